"""The dialect of apache-iggy 0.5 to 0.8, in the three versions of it that differ in bytes.

Sources: the clients 0.5.0, 0.6.0, 0.7.0 and 0.8.0 on PyPI. What is not here lies as today.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.batch import MessageForm
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.fields import (
    U8,
    U32,
    U64,
    Bool,
    Field,
    LongBytes,
    Name,
    OptionalU32,
    RestView,
    ShortText,
    Text,
    to_the_end,
    unsaid,
)
from penstock.iggy.wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy
from penstock.iggy.wire.message import Message, laid_out
from penstock.iggy.wire.older import OlderDialect
from penstock.iggy.wire.options import Typed
from penstock.iggy.wire.placed_poll import PlacedPoll

if TYPE_CHECKING:
    from collections.abc import Mapping


Form07: TypeAlias = Annotated[MessageForm, unsaid(MessageForm.WITH_RESERVE)]
Form06: TypeAlias = Annotated[MessageForm, unsaid(MessageForm.WITHOUT_RESERVE)]
Rewinds: TypeAlias = Annotated[bool, unsaid(True)]
COMPRESSIONS: Final = {1: "none", 2: "gzip"}
_SERVER_DEFAULT: Final = 0


class LoginUser(Message):
    """LOGIN_USER. The first clients of all end after the password."""

    username: ShortText
    password: ShortText
    client: RestView

    def request(self) -> requests.LoginRegister:
        about = LoginClient.decode(self.client) if self.client else LoginClient("", "")
        return requests.LoginRegister(
            0, "", about.version, self.username, self.password, about.context
        )


class LoginClient(Message):
    """What a client says about itself."""

    version: Text
    context: Text


class LoginWithToken(Message):
    """LOGIN_WITH_PERSONAL_ACCESS_TOKEN."""

    token: ShortText

    def request(self) -> requests.LoginRegisterWithToken:
        return requests.LoginRegisterWithToken(0, "", "", self.token, "")


class CreateStream(Message):
    name: Name

    def request(self) -> requests.CreateStream:
        return requests.CreateStream(self.name, {})


class TopicSettings(Message):
    """What CREATE_TOPIC and UPDATE_TOPIC say besides the name."""

    compression: U8
    message_expiry: U64
    """Microseconds; 0 is the server's default, 2**64 - 1 never."""
    max_size: U64
    """Bytes; 0 is the server's default, 2**64 - 1 without limit."""
    replication_factor: U8

    def options(self) -> dict[str, Typed]:
        """Return them as options; raises IggyError."""
        if self.compression not in COMPRESSIONS:
            raise IggyError(ErrorCode.INVALID_COMMAND, f"compression {self.compression}")
        return {
            "compression_algorithm": Typed.text(COMPRESSIONS[self.compression]),
            "message_expiry": Typed.u64(self.message_expiry),
            "max_topic_size": Typed.u64(self.max_size),
        }

    def options_set(self) -> dict[str, Typed]:
        """Return those that are not the default."""
        defaults = TopicSettings(1, _SERVER_DEFAULT, _SERVER_DEFAULT, 0).options()
        options = self.options()
        return {name: value for name, value in options.items() if value != defaults[name]}


class CreateTopic(Message):
    stream: Identifier
    partitions_count: U32
    settings: TopicSettings
    name: Name

    def request(self) -> requests.CreateTopic:
        options = self.settings.options_set()
        return requests.CreateTopic(self.stream, self.partitions_count, self.name, options)


class UpdateTopic(Message):
    stream: Identifier
    topic: Identifier
    settings: TopicSettings
    name: Name

    def request(self) -> requests.UpdateTopic:
        options = self.settings.options()
        return requests.UpdateTopic(self.stream, self.topic, self.name, options)


class GetConsumerOffset(Message):
    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition_id: OptionalU32


class StoreConsumerOffset(Message):
    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition_id: OptionalU32
    offset: U64
    acknowledge: Annotated[int, unsaid(1)] = 1


class DeleteConsumerOffset(Message):
    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition_id: OptionalU32
    acknowledge: Annotated[int, unsaid(1)] = 1


class PollMessages(PlacedPoll):
    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition_id: OptionalU32
    strategy: PollingStrategy
    count: U32
    auto_commit: Bool
    form: Form07 = MessageForm.WITH_RESERVE
    rewinds: Rewinds = True


class PollMessagesWithoutReserve(PlacedPoll):
    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition_id: OptionalU32
    strategy: PollingStrategy
    count: U32
    auto_commit: Bool
    form: Form06 = MessageForm.WITHOUT_RESERVE
    rewinds: Rewinds = True


class SendMessages(Message):
    """The index of the messages and they themselves are what is called a batch here."""

    metadata_size: U32
    stream: Identifier
    topic: Identifier
    partitioning: Partitioning
    messages_count: U32
    batch: RestView
    form: Form07 = MessageForm.WITH_RESERVE


class SendMessagesWithoutReserve(Message):
    metadata_size: U32
    stream: Identifier
    topic: Identifier
    partitioning: Partitioning
    messages_count: U32
    batch: RestView
    form: Form06 = MessageForm.WITHOUT_RESERVE


class LoggedIn(Message):
    user_id: U32


class Stream(Message):
    id: U32
    created_at: U64
    topics_count: U32
    size: U64
    messages_count: U64
    name: Name


class Streams(Message):
    streams: Annotated[list[Any], to_the_end(laid_out(Stream))]


class Topic(Message):
    id: U32
    created_at: U64
    partitions_count: U32
    message_expiry: U64
    compression: U8
    max_size: U64
    replication_factor: U8
    size: U64
    messages_count: U64
    name: Name


class StreamDetails(Message):
    stream: Stream
    topics: Annotated[list[Any], to_the_end(laid_out(Topic))]


class Topics(Message):
    topics: Annotated[list[Any], to_the_end(laid_out(Topic))]


class TopicDetails(Message):
    topic: Topic
    partitions: Annotated[list[Any], to_the_end(laid_out(replies.Partition))]


class User(Message):
    id: U32
    created_at: U64
    status: U8
    username: Name


class Users(Message):
    users: Annotated[list[Any], to_the_end(laid_out(User))]


class UserDetails(Message):
    user: User
    has_permissions: Bool
    permissions: LongBytes


class Nothing(Message):
    """A success that has nothing more to say."""


def _write_partition(out: bytearray, number: int) -> None:
    out += (0 if number == replies.NO_PARTITION else number).to_bytes(4, "little")


class Polled(Message):
    """An answer without messages names no partition: it says 0 where there is none."""

    partition_id: Annotated[int, Field(lambda reader: reader.take(4), _write_partition)]
    current_offset: U64
    messages_count: U32


COMMANDS: Final[Mapping[int, Command]] = {
    **{
        code: Command(code)
        for code in (
            *(1, 10, 11, 12, 20, 21, 22, *range(31, 38), 39, 41, 42, 43, 100, 101, 102),
            *(120, 121, 122, *range(200, 206), *range(300, 306), 402, 403, 503, *range(600, 606)),
        )
    },
    Command.LOGIN_USER: Command.LOGIN_REGISTER,
    Command.LOGIN_WITH_PERSONAL_ACCESS_TOKEN: Command.LOGIN_REGISTER_WITH_PERSONAL_ACCESS_TOKEN,
}
LOOKED_UP: Final = frozenset(
    {
        *(Command.GET_STREAM, Command.GET_TOPIC, Command.GET_CONSUMER_GROUP, Command.GET_CLIENT),
        Command.GET_CONSUMER_OFFSET,
    }
)
_LISTED: Final = frozenset({Command.GET_TOPICS, Command.GET_CONSUMER_GROUPS})
"""What is a look-up from 0.7 on."""
ERROR_NUMBERS: Final = {
    # Options have come with 0.9.
    ErrorCode.UNSUPPORTED_OPTION_KEY: int(ErrorCode.FEATURE_UNAVAILABLE),
    ErrorCode.INVALID_OPTION_VALUE: int(ErrorCode.FEATURE_UNAVAILABLE),
    ErrorCode.INVALID_UTF8: int(ErrorCode.INVALID_COMMAND),
}
_ERROR_NUMBERS: Final = {
    **ERROR_NUMBERS,
    # From 0.6 on what is missing has a number, by whatever it was sought.
    ErrorCode.STREAM_NAME_NOT_FOUND: int(ErrorCode.STREAM_ID_NOT_FOUND),
    ErrorCode.TOPIC_NAME_NOT_FOUND: int(ErrorCode.TOPIC_ID_NOT_FOUND),
}
REQUESTS: Final[Mapping[type[Message], type[Message]]] = {
    requests.LoginRegister: LoginUser,
    requests.LoginRegisterWithToken: LoginWithToken,
    requests.CreateStream: CreateStream,
    requests.CreateTopic: CreateTopic,
    requests.UpdateTopic: UpdateTopic,
    requests.GetConsumerOffset: GetConsumerOffset,
    requests.StoreConsumerOffset: StoreConsumerOffset,
    requests.DeleteConsumerOffset: DeleteConsumerOffset,
}
REPLIES: Final[Mapping[type[Message], type[Message]]] = {
    replies.LoggedIn: LoggedIn,
    replies.Stream: Stream,
    replies.Streams: Streams,
    replies.StreamDetails: StreamDetails,
    replies.Topics: Topics,
    replies.TopicDetails: TopicDetails,
    replies.Users: Users,
    replies.UserDetails: UserDetails,
    replies.Confirmations: Nothing,
    replies.Polled: Polled,
}
VERSION_0_7: Final = OlderDialect(
    "apache-iggy 0.7 and 0.8",
    COMMANDS,
    {
        **REQUESTS,
        requests.PollMessages: PollMessages,
        requests.SendMessages: SendMessages,
    },
    REPLIES,
    MessageForm.WITH_RESERVE,
    numbers=_ERROR_NUMBERS,
    looked_up=LOOKED_UP | _LISTED,
)
VERSION_0_6: Final = OlderDialect(
    "apache-iggy 0.6",
    COMMANDS,
    {
        **REQUESTS,
        requests.PollMessages: PollMessagesWithoutReserve,
        requests.SendMessages: SendMessagesWithoutReserve,
    },
    REPLIES,
    MessageForm.WITHOUT_RESERVE,
    numbers=_ERROR_NUMBERS,
    looked_up=LOOKED_UP,
)
