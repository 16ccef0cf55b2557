"""The numbers of commands, and of the operations that carry them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, unique
from typing import Final


@unique
class Command(IntEnum):
    """What a client asks for."""

    PING = 1
    GET_STATS = 10
    GET_SNAPSHOT = 11
    GET_CLUSTER_METADATA = 12
    DESCRIBE_OPTIONS = 13
    ATTACH_CONSUMER_SESSION = 14
    GET_ME = 20
    GET_CLIENT = 21
    GET_CLIENTS = 22
    GET_USER = 31
    GET_USERS = 32
    CREATE_USER = 33
    DELETE_USER = 34
    UPDATE_USER = 35
    UPDATE_PERMISSIONS = 36
    CHANGE_PASSWORD = 37
    LOGIN_USER = 38
    LOGOUT_USER = 39
    LOGIN_REGISTER = 40
    GET_PERSONAL_ACCESS_TOKENS = 41
    CREATE_PERSONAL_ACCESS_TOKEN = 42
    DELETE_PERSONAL_ACCESS_TOKEN = 43
    LOGIN_WITH_PERSONAL_ACCESS_TOKEN = 44
    LOGIN_REGISTER_WITH_PERSONAL_ACCESS_TOKEN = 45
    POLL_MESSAGES = 100
    SEND_MESSAGES = 101
    FLUSH_UNSAVED_BUFFER = 102
    GET_POLL_ROUTING = 103
    POLL_MESSAGES_ON_PRIMARY = 104
    GET_CONSUMER_OFFSET = 120
    STORE_CONSUMER_OFFSET = 121
    DELETE_CONSUMER_OFFSET = 122
    GET_CONSUMER_OFFSET_ROUTING = 123
    GET_STREAM = 200
    GET_STREAMS = 201
    CREATE_STREAM = 202
    DELETE_STREAM = 203
    UPDATE_STREAM = 204
    PURGE_STREAM = 205
    GET_TOPIC = 300
    GET_TOPICS = 301
    CREATE_TOPIC = 302
    DELETE_TOPIC = 303
    UPDATE_TOPIC = 304
    PURGE_TOPIC = 305
    CREATE_PARTITIONS = 402
    DELETE_PARTITIONS = 403
    DELETE_SEGMENTS = 503
    GET_CONSUMER_GROUP = 600
    GET_CONSUMER_GROUPS = 601
    CREATE_CONSUMER_GROUP = 602
    DELETE_CONSUMER_GROUP = 603
    JOIN_CONSUMER_GROUP = 604
    LEAVE_CONSUMER_GROUP = 605
    SYNC_CONSUMER_GROUP = 606


@unique
class Operation(IntEnum):
    """The header's operation byte: one a writing command, one for everything that only reads."""

    REGISTER = 1
    NON_REPLICATED = 2
    LOGOUT_USER = 3
    CREATE_STREAM = 128
    UPDATE_STREAM = 129
    DELETE_STREAM = 130
    PURGE_STREAM = 131
    CREATE_TOPIC = 132
    UPDATE_TOPIC = 133
    DELETE_TOPIC = 134
    PURGE_TOPIC = 135
    CREATE_PARTITIONS = 136
    DELETE_PARTITIONS = 137
    DELETE_SEGMENTS = 138
    CREATE_CONSUMER_GROUP = 139
    DELETE_CONSUMER_GROUP = 140
    CREATE_USER = 141
    UPDATE_USER = 142
    DELETE_USER = 143
    CHANGE_PASSWORD = 144
    UPDATE_PERMISSIONS = 145
    CREATE_PERSONAL_ACCESS_TOKEN = 146
    DELETE_PERSONAL_ACCESS_TOKEN = 147
    JOIN_CONSUMER_GROUP = 148
    LEAVE_CONSUMER_GROUP = 149
    SEND_MESSAGES = 160
    STORE_CONSUMER_OFFSET = 161
    DELETE_CONSUMER_OFFSET = 162


COMMAND_OF: Final[Mapping[int, Command]] = {
    operation: Command[operation.name]
    for operation in Operation
    if operation.name in Command.__members__
}
"""The command behind each operation that stands for exactly one."""

NON_REPLICATED: Final = frozenset(
    {
        *(Command.PING, Command.GET_STATS, Command.GET_SNAPSHOT, Command.GET_CLUSTER_METADATA),
        *(Command.DESCRIBE_OPTIONS, Command.ATTACH_CONSUMER_SESSION, Command.GET_ME),
        *(Command.GET_CLIENT, Command.GET_CLIENTS, Command.GET_USER, Command.GET_USERS),
        *(Command.GET_PERSONAL_ACCESS_TOKENS, Command.POLL_MESSAGES),
        *(Command.FLUSH_UNSAVED_BUFFER, Command.GET_POLL_ROUTING),
        *(Command.POLL_MESSAGES_ON_PRIMARY, Command.GET_CONSUMER_OFFSET),
        *(Command.GET_CONSUMER_OFFSET_ROUTING, Command.GET_STREAM, Command.GET_STREAMS),
        *(Command.GET_TOPIC, Command.GET_TOPICS, Command.GET_CONSUMER_GROUP),
        *(Command.GET_CONSUMER_GROUPS, Command.SYNC_CONSUMER_GROUP),
    }
)
"""Commands that travel under operation 2, with their code in the header."""
