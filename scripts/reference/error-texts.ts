// What caused each code, and what to do about it: the texts of docs/reference/errors.md. They stand here and not beside
// src/kernel/codes.ts, because a browser and `terret --help` load that. A code without a text does not compile.
import type { FailureKind, FaultCode } from '../../src/kernel/index.ts'
import type { WireCode } from '../../src/server/wire.ts'

export type ErrorText = {
  readonly cause: string
  readonly remedy: string
}

/** In the order of the page: what a newcomer meets first, then the sessions, then the store. */
export const FAULT_TEXTS: Readonly<Record<FaultCode, ErrorText>> = {
  invalid_input: {
    cause: 'An argument of the call is wrong: a name, a number, a schema or a text that is not allowed there.',
    remedy:
      'Read the message: it names the argument and what is allowed. Nothing was written, so correct the call and make it again.',
  },
  invalid_config: {
    cause:
      'What the program was set up with is wrong: an option that does not exist, a model without a key, a package that is not installed, a database that refuses the user.',
    remedy:
      'Read the message: it names the option and the nearest one that exists. Correct the options, the configuration file or the variable, and start again.',
  },
  unsupported: {
    cause:
      'This store, server or client cannot do what was asked. No option is left out in silence, so the call was refused.',
    remedy: 'Do it where it is possible: on a harness with the store itself instead of a client, or on another store.',
  },
  harness_closed: {
    cause: '`close()` was called on this harness, client or worker, or its process is ending.',
    remedy: 'Make a new one. Sessions are not lost: whoever opens the same store goes on with them.',
  },
  decision_stale: {
    cause:
      'The decision does not fit what waits now: somebody decided before, the call has ended, or its arguments or its tool are not those that were shown. This is what makes a second click harmless.',
    remedy:
      'Read what is pending again, with `harness.pending()` or `terret pending`, and decide what you see there. The first decision stands.',
  },
  call_unknown: {
    cause: 'The session never had a call of this id. Calls of a child have the session of the child.',
    remedy: 'Take the id and the session from what is pending now: `harness.pending()` or `terret pending`.',
  },
  cursor_stale: {
    cause:
      'The position to read on from does not exist in this log: it is beyond the end, or it belongs to another session or an earlier store.',
    remedy: 'Read the session again from its beginning, and keep the new position.',
  },
  id_reused: {
    cause:
      'The id, or the idempotency key, was used before for something else. The same id with the same content is no error: it is done once.',
    remedy: 'Choose a new id for new content. Keep an id only to send exactly the same thing again.',
  },
  too_many: {
    cause:
      'A bound on how much may be there at once was met: messages waiting, children started, sessions open, bytes sent.',
    remedy: 'Send less at once, or wait until some of it is done, then try again.',
  },
  over_budget: {
    cause:
      'The call was not begun, since it could cost more than the budget of the run, the session or its tree has left.',
    remedy: 'Allow more money, with `terret approve ID budget --usd 2` or in the options, or let the run end here.',
  },
  conflict: {
    cause:
      'Something else was there first: the session has grown, the target is not empty, the file exists, the name is taken.',
    remedy:
      'Look at what is there now, then decide whether to do it again or under another name. Nothing was overwritten.',
  },
  session_missing: {
    cause:
      'The store has no session of this id. It was never opened, it was removed, or this is another store than the one you have in mind.',
    remedy: 'List the sessions (`harness.list()`, `terret list`) and check the id and the path of the store.',
  },
  session_exists: {
    cause: 'A session of this id is there already, and opening it was to make a new one.',
    remedy: 'Open it with `reuse: true`, or choose another id.',
  },
  session_closed: {
    cause: 'The session was closed. Its log can be read, and it accepts nothing more.',
    remedy: 'Open a new session, or fork this one to go on from where it stood.',
  },
  session_busy: {
    cause: 'A worker drives the session at this moment, and what you asked for needs it to rest.',
    remedy: 'Wait for the run, interrupt it, or send the message with another `when`.',
  },
  session_held: {
    cause:
      'The session was imported and is held: it does nothing until a person has seen what it would do, so that nothing runs twice.',
    remedy: "Look at what is open in it, then let it go on: `terret resume ID`, or `send([{ type: 'resume' }])`.",
  },
  session_elsewhere: {
    cause:
      'The session belongs to another program on the same store, or needs a planner or tools that this program does not have.',
    remedy: 'Use the program that is named in the message, or give this one the same `program` and tools.',
  },
  session_damaged: {
    cause:
      'The log of this session cannot be read as a whole, most often since a file was changed or a disk failed. Other sessions are not concerned.',
    remedy:
      'Run `terret doctor`: it says where the damage begins. Read or export what is whole, restore the store from a backup, or go on in a new session.',
  },
  lease_lost: {
    cause:
      'Another worker has taken the session, because this one did not renew its lease in time: the process was stopped, or the machine slept. Nothing that this one writes now is accepted, so two workers never write.',
    remedy:
      'Nothing has to be done: the other worker goes on. If it happens often, look for long pauses of the process and for wrong clocks.',
  },
  store_busy: {
    cause: 'The database was locked, away or too slow for this write. Nothing was written.',
    remedy:
      'Try again. Workers do so by themselves. If it stays, look for a program that holds a lock, or for a pool that is too small.',
  },
  store_closed: {
    cause: '`close()` was called on the store, and something still uses it.',
    remedy: 'Close the harness first and the store last. Open a new store to go on.',
  },
  store_replaced: {
    cause:
      'The database is another one than before: the file was replaced by an older copy, or the tables were removed. Going on would do again what was done since.',
    remedy:
      'Put the right file back. If it was replaced on purpose, accept it with `terret doctor --accept-store`, or open it in a new process.',
  },
  store_newer: {
    cause: 'The store was written by a newer version of Terret, whose form this one does not know.',
    remedy: 'Upgrade this program, or open another store. An older version never writes into a newer form.',
  },
  store_damaged: {
    cause: 'The database does not agree with itself: a page is broken, or a blob does not match its checksum.',
    remedy:
      'Stop the program and restore the store from a backup. `terret doctor` shows which sessions can still be read.',
  },
  store_unsupported: {
    cause:
      'There is no driver for the store in this place, or the database is too old or set up in a way that would lose data.',
    remedy:
      'Read the message: it names what is missing. With a bundler, keep `terret` out of the bundle, as with `serverExternalPackages` in Next.js.',
  },
  disk_full: {
    cause: 'There is no room on the disk of the store. Nothing was written, and runs wait.',
    remedy: 'Make room. Runs go on by themselves; a command can be given again.',
  },
  io_error: {
    cause:
      'The disk or the file of the store cannot be used: it failed, it may only be read, or it belongs to another user.',
    remedy:
      'Check that the folder exists, is yours and can be written, and that the disk is sound; then open the store again.',
  },
}

/** The codes that only a server has. */
export const WIRE_TEXTS: Readonly<Record<Exclude<WireCode, FaultCode>, ErrorText & { readonly status: string }>> = {
  unauthorized: {
    status: '401',
    cause: 'The request has no token, a wrong one, or two; or the signature of a delivery does not fit.',
    remedy:
      'Send it as `Authorization: Bearer TOKEN`. `terret serve` prints the first one, `terret token` makes others.',
  },
  forbidden: {
    status: '403',
    cause: 'The token is good, and its role or its reach does not allow this.',
    remedy: 'Use a token with the role that the message names.',
  },
  bad_host: {
    status: '421',
    cause:
      'The `Host` of the request is not a name of this server. This keeps pages of other sites from reaching a server on your machine.',
    remedy:
      'Use an address that the message names, or allow the name: `terret serve --name HOST`, or the option `names` of `serve`.',
  },
  bad_origin: {
    status: '403',
    cause: 'A page of another origin sent the request.',
    remedy: 'Ask from a server of your own, or mount the routes under the origin of the page.',
  },
  bad_target: {
    status: '400',
    cause: 'The path or the query is not well encoded, or names something twice.',
    remedy: 'Encode each part with `encodeURIComponent`, and give each name once.',
  },
  not_found: {
    status: '404',
    cause: 'There is no such route, file or endpoint.',
    remedy: 'Compare the path with [the routes](routes.md) or with `GET /v1/openapi.json`.',
  },
  method: {
    status: '405',
    cause: 'The path exists and takes another method.',
    remedy: 'Use one of those in the header `Allow`.',
  },
  media_type: {
    status: '415',
    cause: 'The body is not sent as JSON, or it has a content encoding.',
    remedy: 'Send `content-type: application/json`, without compression.',
  },
  too_large: {
    status: '413',
    cause: 'The body, or the answer that was asked for, is larger than one request may carry.',
    remedy: 'Send less at once, or read page by page.',
  },
  in_flight: {
    status: '409',
    cause: 'A request with the same `Idempotency-Key` is being answered at this moment.',
    remedy: 'Send the same request again after the time in `Retry-After`: it gets the answer of the first one.',
  },
  store_changed: {
    status: '409',
    cause: 'The server has another store than the one that the position of the reader comes from.',
    remedy: 'Read everything again from the beginning.',
  },
  closing: {
    status: '503',
    cause: 'The server is ending, and takes no new requests.',
    remedy: 'Connect again after the time in `Retry-After`.',
  },
  internal: {
    status: '500',
    cause: 'Something unexpected went wrong in the server. Its text is not sent, because it may hold secrets.',
    remedy: 'Read the output of the server. If it is a bug of Terret, report it.',
  },
}

/** What a tool result is an error of. The model reads it, and it ends no run by itself. */
export const FAILURE_TEXTS: Readonly<Record<FailureKind, string>> = {
  InvalidInput:
    'The arguments do not fit the schema or the state of things. The model can correct them and call again.',
  NotFound: 'What the arguments name is not there.',
  Denied: 'A policy, a guard, a hook or a person said no.',
  Timeout: 'It took longer than the tool may take.',
  NonZeroExit: 'A command ended with another exit code than 0.',
  Unavailable: 'A service or a program that the tool needs cannot be reached now.',
  Interrupted: 'The run was stopped while the call was at work.',
  Unknown:
    'The process ended during a call that may run only once, so nobody knows whether it took effect. It is not tried again by itself.',
  Failed: 'The tool threw an error of its own.',
}

/** The one reason of a failed run that `classify` tells by the class of its failure. The others are told in its words. */
export const PROVIDER_TEXT: ErrorText = {
  cause: 'The provider of the model refused, or failed for longer than the run may wait.',
  remedy:
    'Read `class` of the failure: it tells a wrong key from an outage. Correct it or wait, then send a message to go on.',
}
