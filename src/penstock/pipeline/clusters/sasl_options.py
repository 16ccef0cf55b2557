"""Kafka's options of TLS and log-in, as far as they mean something to a client that is not Java."""

from __future__ import annotations

import re
from typing import Final

from penstock.clients.access import Password
from penstock.clients.kafka.sasl import MECHANISMS, PLAIN
from penstock.pipeline.source.option_values import Given, OptionError

SECURITY: Final = "kafka.security.protocol"
MECHANISM: Final = "kafka.sasl.mechanism"
JAAS: Final = "kafka.sasl.jaas.config"
UNDERSTOOD: Final = (SECURITY, MECHANISM, JAAS)

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MODULES: Final = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": (PLAIN,),
    "org.apache.kafka.common.security.scram.ScramLoginModule": MECHANISMS[1:],
}
_VALUE: Final = r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))"""
_JAAS: Final = re.compile(rf"\s*([\w.]+)\s+required((?:\s+\w+\s*=\s*{_VALUE})*)\s*;\s*")
_SETTING: Final = re.compile(rf"(\w+)\s*=\s*{_VALUE}")


def security_protocol(given: Given, *, has_tls: bool) -> str:
    """Return which of Kafka's four is spoken. Raises OptionError."""
    for name in given:
        is_security = name.startswith(("kafka.ssl.", "kafka.sasl.", "kafka.security."))
        if is_security and name not in UNDERSTOOD:
            raise OptionError(f"{name} can't be set: {_instead(name)}")
    text = given.get(SECURITY, "").strip().upper()
    if not text:
        text = ("SASL_" if MECHANISM in given else "") + ("SSL" if has_tls else "PLAINTEXT")
    if text not in _PROTOCOLS:
        raise OptionError(f"{SECURITY} must be one of {', '.join(_PROTOCOLS)}, not {text!r}")
    if has_tls and not text.endswith("SSL"):
        raise OptionError(f"{SECURITY} is {text}, but the address asks for TLS: set it to SSL")
    if text.startswith("SASL_") != (MECHANISM in given):
        raise OptionError(
            f"{MECHANISM} and {SECURITY} SASL_SSL or SASL_PLAINTEXT belong together: give both"
        )
    return text


def kafka_login(given: Given) -> Password | None:
    """Return the user and how one logs in, None where nobody does. Raises OptionError."""
    if (MECHANISM in given) != (JAAS in given):
        raise OptionError(f"{MECHANISM} and {JAAS} belong together: give both")
    if MECHANISM not in given:
        return None
    mechanism = given[MECHANISM].strip().upper()
    if mechanism not in MECHANISMS:
        raise OptionError(f"{MECHANISM} must be one of {', '.join(MECHANISMS)}, not {mechanism!r}")
    found = _JAAS.fullmatch(given[JAAS])
    settings = _settings(found[2]) if found else {}
    if found is None or not {"username", "password"} <= settings.keys():
        # What it says instead is secret.
        raise OptionError(
            f'{JAAS} must be of the form MODULE required username="…" password="…"; where MODULE '
            f"is {' or '.join(_MODULES)}"
        )
    if mechanism not in _MODULES.get(found[1], ()):
        raise OptionError(f"{JAAS} names {found[1]}, which is not for {MECHANISM} {mechanism}")
    return Password(settings["username"], settings["password"], mechanism)


def _settings(text: str) -> dict[str, str]:
    return {
        found[1]: re.sub(
            r"\\(.)", r"\1", next(each for each in found.groups()[1:] if each is not None)
        )
        for found in _SETTING.finditer(text)
    }


def _instead(name: str) -> str:
    if name.startswith("kafka.ssl.keystore.") or name == "kafka.ssl.key.password":
        return "there is no log-in by certificate; use kafka.sasl.mechanism"
    if name.startswith("kafka.ssl.truststore."):
        return "name a file of certificates in PEM as tlsCaFile"
    if name == "kafka.ssl.endpoint.identification.algorithm":
        return "a certificate must be for the host's name"
    return f"understood are {', '.join(UNDERSTOOD)}, and tlsCaFile"
