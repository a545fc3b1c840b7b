// The table of routes: the role, input and answer of each. The server checks requests by it, the OpenAPI document and
// the guide are generated from it, and clients and tests read it. A route that is not in the table does not exist.
import { type AnswerName, BODIES, QUERIES, type WireSchema } from './wire-schemas.ts'

/** Operators and approvers can also view; neither includes the other; admins may do everything. */
export type Role = 'viewer' | 'operator' | 'approver' | 'admin'
/** No token is asked for: each delivery is signed, with a secret that its sender and the server share. */
export const SIGNED = 'signed'
/** The methods that routes take. */
export type Method = 'GET' | 'POST' | 'DELETE'

/** A route: who may ask it, what it takes, and what it answers. */
export type Route = {
  /** The method of the request. */
  readonly method: Method
  /** `:name` stands for one segment of the path. */
  readonly path: string
  /** The role that the token must have. Admins have every role. `signed`: the delivery is signed instead. */
  readonly role: Role | typeof SIGNED
  /** What the route does, in the documents that are made of this table. */
  readonly says: string
  /** The JSON Schema of the query. Absent: the request has none. */
  readonly query?: WireSchema
  /** The JSON schema of the body. Absent: the request has no body. */
  readonly body?: WireSchema
  /** The most bytes of a body. Default: `BODY_MAX`. */
  readonly bodyMax?: number
  /** The status of an answer that is no refusal. */
  readonly status: 200 | 201 | 202
  /** The name of the answer's schema, or a stream of events, a text, or bytes to download. */
  readonly answer: AnswerName | 'stream' | 'text' | 'bytes'
  /** The route takes an `Idempotency-Key`: a repeated key makes one change. */
  readonly keyed?: true
}

export const BODY_MAX = 1024 * 1024
const FILE_MAX = 64 * 1024 * 1024

const getRoute = (path: string, answer: Route['answer'], says: string, query?: WireSchema): Route => {
  return { method: 'GET', path: `/v1/${path}`, role: 'viewer', says, status: 200, answer, ...(query ? { query } : {}) }
}
const postRoute = (
  path: string,
  role: Role,
  [status, answer]: readonly [Route['status'], Route['answer']],
  body: WireSchema,
  says: string,
): Route => {
  return { method: 'POST', path: `/v1/${path}`, role, says, body, status, answer }
}
const withIdempotencyKey = (route: Route): Route => ({ ...route, keyed: true })

const routes = {
  health: getRoute('health', 'Health', 'whether it can write, where it lies, which hosts it answers to'),
  metrics: {
    ...getRoute('', 'text', 'the same in numbers, and what this process met and did, as Prometheus reads it'),
    path: '/metrics',
  },
  me: getRoute('me', 'Me', 'whose token this is'),
  openapi: getRoute('openapi.json', 'Document', 'this table, as an OpenAPI 3.1 document'),
  sessions: getRoute('sessions', 'Sessions', 'the sessions, newest first, a page at a time', QUERIES.sessions),
  open: withIdempotencyKey(
    postRoute(
      'sessions',
      'operator',
      [201, 'Opened'],
      BODIES.open,
      'a new session, with its first message if one is given',
    ),
  ),
  session: getRoute(
    'sessions/:id',
    'Session',
    'the card of a session, what it waits for, and what it spent; with `include`, also the outcome that it pursues',
    QUERIES.session,
  ),
  result: getRoute(
    'sessions/:id/result',
    'Result',
    'how its last run ended; with `wait`, after so many seconds at most',
    QUERIES.wait,
  ),
  messages: getRoute('sessions/:id/messages', 'Messages', 'the conversation as the model is shown it'),
  events: getRoute(
    'sessions/:id/events',
    'Events',
    'a page of its log, forwards from `after` or backwards from `before`',
    QUERIES.events,
  ),
  state: getRoute('sessions/:id/state', 'State', 'the session as folded up to an event', QUERIES.state),
  follow: getRoute('sessions/:id/stream', 'stream', 'its events as they come, and what is being said', QUERIES.stream),
  streams: postRoute(
    'stream',
    'viewer',
    [200, 'stream'],
    BODIES.stream,
    'the same of many sessions, and cards that change',
  ),
  blob: getRoute('sessions/:id/blobs/:hash', 'bytes', 'a file that the session refers to, to download'),
  export: getRoute('sessions/:id/export', 'bytes', 'the whole session as a file', QUERIES.export),
  send: withIdempotencyKey(
    postRoute('sessions/:id/messages', 'operator', [202, 'Receipt'], BODIES.message, 'a message for the session'),
  ),
  commands: withIdempotencyKey(
    postRoute(
      'sessions/:id/commands',
      'operator',
      [202, 'Receipt'],
      BODIES.commands,
      'several words at once: all are said, or none',
    ),
  ),
  answer: withIdempotencyKey(
    postRoute(
      'sessions/:id/answers',
      'operator',
      [202, 'Receipt'],
      BODIES.answer,
      'an answer to a call that waits for one',
    ),
  ),
  interrupt: withIdempotencyKey(
    postRoute(
      'sessions/:id/interrupt',
      'operator',
      [202, 'Receipt'],
      BODIES.interrupt,
      'stop what it does, or pause it',
    ),
  ),
  schedule: withIdempotencyKey(
    postRoute(
      'sessions/:id/schedule',
      'operator',
      [202, 'Scheduled'],
      BODIES.schedule,
      'look at the session at a time, or in so many ms; a wake that waits under the same key stands',
    ),
  ),
  unschedule: postRoute(
    'sessions/:id/unschedule',
    'operator',
    [202, 'Unscheduled'],
    BODIES.unschedule,
    'drop the wake that waits under this key',
  ),
  rename: withIdempotencyKey(
    postRoute(
      'sessions/:id/rename',
      'operator',
      [202, 'Renamed'],
      BODIES.rename,
      'give the session another title in lists; no run begins',
    ),
  ),
  pursue: withIdempotencyKey(
    postRoute(
      'sessions/:id/pursue',
      'operator',
      [202, 'Pursued'],
      BODIES.pursue,
      'work towards an outcome in rounds, each graded by a rubric; the session must rest',
    ),
  ),
  wake: postRoute('sessions/:id/wake', 'operator', [202, 'Done'], BODIES.nothing, 'look at the session now'),
  fork: withIdempotencyKey(
    postRoute(
      'sessions/:id/fork',
      'operator',
      [201, 'Opened'],
      BODIES.fork,
      'a new session that goes on from an event of this one',
    ),
  ),
  whatIf: postRoute(
    'sessions/:id/what-if',
    'operator',
    [200, 'WhatIf'],
    BODIES.whatIf,
    'live it again from an event on, with something changed, and compare; nothing is written, and only tools that read may run',
  ),
  undo: postRoute(
    'sessions/:id/undo',
    'operator',
    [200, 'Undone'],
    BODIES.undo,
    'take back what the calls of a run changed',
  ),
  pins: getRoute('sessions/:id/pins', 'Pins', 'what is pinned: every later request holds it, word for word'),
  pin: postRoute(
    'sessions/:id/pins',
    'operator',
    [200, 'Pinned'],
    BODIES.pin,
    'pin a text, or a message by its seq; the session must rest',
  ),
  unpin: {
    method: 'DELETE',
    path: '/v1/sessions/:id/pins/:seq',
    role: 'operator',
    says: 'let a pin go, by its seq or by its `name`; the session must rest',
    status: 200,
    answer: 'Done',
  },
  close: postRoute('sessions/:id/close', 'operator', [202, 'Done'], BODIES.nothing, 'nothing more will be accepted'),
  decide: withIdempotencyKey(
    postRoute(
      'sessions/:id/decisions',
      'approver',
      [202, 'Receipt'],
      BODIES.decision,
      'allow or deny a call, by the digest of what was shown; `budget` needs an admin',
    ),
  ),
  remove: {
    method: 'DELETE',
    path: '/v1/sessions/:id',
    role: 'admin',
    says: 'take the session out for good',
    status: 200,
    answer: 'Removed',
  },
  import: {
    ...postRoute('import', 'admin', [201, 'Opened'], BODIES.import, 'a session from an exported file'),
    bodyMax: FILE_MAX,
  },
  tokens: { ...getRoute('tokens', 'Tokens', 'who has a token'), role: 'admin' },
  makeToken: postRoute('tokens', 'admin', [201, 'TokenMade'], BODIES.token, 'a token for somebody: shown once'),
  dropToken: {
    method: 'DELETE',
    path: '/v1/tokens/:name',
    role: 'admin',
    says: 'a token that is no longer good',
    status: 200,
    answer: 'Done',
  },
  pending: getRoute('pending', 'PendingList', 'what waits for people in all sessions', QUERIES.pending),
  agents: getRoute('agents', 'Agents', 'the agents: models, tools, limits, graphs'),
  trigger: {
    method: 'POST',
    path: '/v1/triggers/:endpoint',
    role: SIGNED,
    says: 'a signed delivery from outside: on disk when the answer comes',
    status: 202,
    answer: 'Triggered',
  },
  triggers: getRoute(
    'triggers',
    'Triggers',
    'the sources of triggers with what was decided about their newest deliveries, and the last fifty; needs the reach `all`',
    QUERIES.triggers,
  ),
  retryTrigger: postRoute(
    'triggers/:id/retry',
    'operator',
    [202, 'Done'],
    BODIES.nothing,
    'run a dead trigger again where it failed; the first who decides wins',
  ),
  dropTrigger: postRoute(
    'triggers/:id/drop',
    'operator',
    [202, 'Done'],
    BODIES.nothing,
    'close a dead trigger; its log stays',
  ),
  letters: getRoute(
    'letters',
    'Letters',
    'settled runs that a consumer could not be told of, the newest fifty; needs the reach `all`',
  ),
  decideLetter: postRoute(
    'letters',
    'operator',
    [202, 'LetterDecided'],
    BODIES.letter,
    'tell a consumer of a dead letter again, or drop it; the first who decides wins, and the answer says who that was',
  ),
  evals: getRoute(
    'evals',
    'Evals',
    'the last hundred runs of suites whose reports are kept here; needs the reach `all`',
    QUERIES.evals,
  ),
  evalRun: getRoute(
    'evals/:id',
    'EvalRun',
    'the report of a run of a suite; with `before`, compared with an earlier one',
    QUERIES.evalRun,
  ),
  case: getRoute('sessions/:id/case', 'Case', 'the session as a case of a suite'),
  usage: getRoute('usage', 'Usage', 'what was spent, by day, agent and model', QUERIES.usage),
  cron: getRoute('cron', 'CronJobs', 'the cron jobs, with their next times and their last run', QUERIES.cron),
  changeCron: postRoute(
    'cron',
    'operator',
    [200, 'CronChanged'],
    BODIES.cron,
    'add a cron job or change it, switch it on or off, run it now, or remove it',
  ),
  due: getRoute('due', 'Due', 'sessions that look again by themselves, and when', QUERIES.limit),
} as const satisfies Readonly<Record<string, Route>>

/** The names of all routes. */
export type RouteName = keyof typeof routes
/** Every route of a server, by its name. */
export const ROUTES: Readonly<Record<RouteName, Route>> = routes
