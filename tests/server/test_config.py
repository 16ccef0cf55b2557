"""One name in three places, an order between them, and no mistake that passes unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.server.config import SETTINGS, Config, ConfigError, load_config


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "penstock.toml"


def test_defaults_without_any_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config({}, {"HOME": "/"}) == Config()


def test_every_setting_is_a_flag_a_variable_and_a_key() -> None:
    assert {setting.flag for setting in SETTINGS} >= {"--kafka-port", "--data-folder"}
    port = next(setting for setting in SETTINGS if setting.key == "kafka_port")
    assert (port.flag, port.variable) == ("--kafka-port", "PENSTOCK_KAFKA_PORT")
    assert all(setting.help.endswith(".") for setting in SETTINGS)


def test_a_flag_wins_over_the_environment_that_over_the_file(file: Path) -> None:
    file.write_text("kafka_port = 1\npulsar_port = 1\niggy_port = 1\n")
    environment = {"PENSTOCK_KAFKA_PORT": "2", "PENSTOCK_PULSAR_PORT": "2"}
    config = load_config({"kafka_port": "3"}, environment, file)
    assert (config.kafka_port, config.pulsar_port, config.iggy_port) == (3, 2, 1)
    assert config.default_partitions == 1


def test_the_file_is_found_in_the_working_directory_or_by_its_variable(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    file.write_text("default_partitions = 7\n")
    other = tmp_path / "other.toml"
    other.write_text("default_partitions = 8\n")
    assert load_config({}, {}).default_partitions == 7
    assert load_config({}, {"PENSTOCK_CONFIG": str(other)}).default_partitions == 8


def test_values_have_the_types_of_their_settings(file: Path) -> None:
    file.write_text('segment_bytes = "64 MiB"\nauto_create_topics = false\ndata_folder = "here"\n')
    config = load_config({}, {}, file)
    assert config.segment_bytes == 64 << 20
    assert config.auto_create_topics is False
    assert config.data_folder == Path("here")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# x\nkafka_prot = 9092\n", ':2: unknown key "kafka_prot"; did you mean "kafka_port"'),
        ("bananas = 1\n", ':1: unknown key "bananas"; known are'),
        ("kafka_port = 70000\n", ':1: kafka_port: "70000" is refused; what is needed is a port'),
        ("kafka_port = -1\n", "a port number from 0 to 65535"),
        ("kafka_port = [1]\n", ":1: kafka_port takes one value, not a list"),
        ("\n[kafka_port]\nx = 1\n", ":2: kafka_port takes one value, not a dict"),
        ("kafka_port = 1.5\n", ":1: kafka_port takes one value, not a float"),
        ('flush = "never"\n', "one of acknowledged, written"),
        ('auto_create_topics = "maybe"\n', "true or false"),
        ('segment_bytes = "1 KiB"\n', "a size from 1MiB to 2GiB"),
        ('segment_bytes = "big"\n', "a size from 1MiB to 2GiB"),
        ('host = ""\n', "not empty"),
        ("default_partitions = 0\n", "from 1 to 10000"),
        ("kafka_port = \n", "no valid TOML"),
    ],
)
def test_a_mistake_in_the_file_is_refused_with_its_place(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_config({}, {}, file)
    assert str(refused.value).startswith(str(file))
    assert said in str(refused.value)


def test_a_file_that_was_named_must_be_there(file: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load_config({}, {}, file)


def test_mistakes_in_the_environment_and_in_flags_are_refused() -> None:
    with pytest.raises(ConfigError, match=r'PENSTOCK_KAFKA_PRT.*did you mean "PENSTOCK_KAFKA_PORT'):
        load_config({}, {"PENSTOCK_KAFKA_PRT": "1"})
    with pytest.raises(ConfigError, match=r'^PENSTOCK_KAFKA_PORT: "x" is refused'):
        load_config({}, {"PENSTOCK_KAFKA_PORT": "x"})
    with pytest.raises(ConfigError, match=r'^--kafka-port: "x" is refused'):
        load_config({"kafka_port": "x"}, {})
    with pytest.raises(ConfigError, match=r'^PENSTOCK_DATA_FOLDER: "" is refused'):
        load_config({}, {"PENSTOCK_DATA_FOLDER": ""})


@pytest.mark.parametrize("service", ["", "KAFKA_", "0_", "HEADLESS_", "SERVICE_", "CONFIG_"])
def test_what_kubernetes_sets_for_services_of_our_name_is_no_mistake(service: str) -> None:
    name = f"PENSTOCK_{service}"
    environment = {
        f"{name}SERVICE_HOST": "10.0.0.1",
        f"{name}SERVICE_PORT": "9092",
        f"{name}SERVICE_PORT_KAFKA_TLS": "9093",
        f"{name}PORT": "tcp://10.0.0.1:9092",
        f"{name}PORT_9092_TCP": "tcp://10.0.0.1:9092",
        f"{name}PORT_9092_TCP_PROTO": "tcp",
        f"{name}PORT_9092_TCP_PORT": "9092",
        f"{name}PORT_9092_TCP_ADDR": "10.0.0.1",
        f"{name}PORT_6650_UDP_ADDR": "fd00::1",
    }
    assert load_config({}, environment) == Config()
    assert load_config({}, {f"{name}PORT": "tcp://[fd00::1]:9092"}) == Config()


@pytest.mark.parametrize(
    "mistake",
    [
        ("PENSTOCK_KAFKA_PORT", "10.0.0.1:9092"),
        ("PENSTOCK_PORT", "9092"),
        ("PENSTOCK_HEADLESS_PORT", "9092"),
        ("PENSTOCK_HOST_SERVICE", "10.0.0.1"),
        ("PENSTOCK_PORT_KAFKA", "9092"),
        ("PENSTOCK_KAFKA_PRT", "tcp://10.0.0.1:9092"),
    ],
)
def test_mistakes_that_look_like_kubernetes_are_still_refused(mistake: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match=mistake[0]):
        load_config({}, dict([mistake]))


def test_a_port_that_two_protocols_have_is_named_with_both() -> None:
    with pytest.raises(ConfigError, match=r"kafka_port and iggy_port are both 7000.*--iggy-port"):
        load_config({"kafka_port": "7000"}, {"PENSTOCK_IGGY_PORT": "7000"})
    default = str(Config().pulsar_port)
    with pytest.raises(ConfigError, match="kafka_port and pulsar_port"):
        load_config({"kafka_port": default}, {})
    free = dict.fromkeys(("kafka_port", "pulsar_port", "iggy_port"), "0")
    assert load_config(free, {}).iggy_port == 0


def test_a_refused_secret_is_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        load_config({"iggy_password": ""}, {})
    assert "this value" in str(refused.value)
