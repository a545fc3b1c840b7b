// The JSON Schemas (2020-12) of what routes take and give, by the names that the OpenAPI document has them under. Bodies and queries are
// closed: a field that is not there is refused. Answers are open: a later version may say more.
import type { Json } from '../kernel/index.ts'

export type Schema = { readonly [keyword: string]: Json }

const text = { type: 'string' } as const
const filled = { type: 'string', minLength: 1, maxLength: 512 } as const
const flag = { type: 'boolean' } as const
const whole = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const
const number = { type: 'number' } as const
const anything = {} as const
const list = (items: Schema, maxItems = 1_000): Schema => ({ type: 'array', items, maxItems })
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] })
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
const words = (...values: readonly string[]): Schema => ({ type: 'string', enum: [...values] })

/** Refuses what it does not name. */
const closed = (properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema => {
  return { type: 'object', properties, required: [...required], additionalProperties: false }
}
const open = (properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema => {
  return { type: 'object', properties, required: [...required] }
}

export const LABELS_MAX = 16
const labels: Schema = { type: 'object', additionalProperties: { type: 'string' }, maxProperties: LABELS_MAX }
const metadata: Schema = { type: 'object' }
/** How a message is said; what is wrong with a part is said by the library, with what to do. */
const input: Schema = { anyOf: [text, { type: 'object' }, list({ type: 'object', required: ['type'] }, 200)] }
const command: Schema = {
  type: 'object',
  properties: { type: words('message', 'redirect', 'pause', 'resume', 'cancel') },
  required: ['type'],
}
const why = { type: 'string', maxLength: 4_096 } as const
const ROLES = words('viewer', 'operator', 'approver', 'admin')
const REACH = words('own', 'all')

export const BODIES = {
  open: closed({ agent: filled, input, folder: text, labels, metadata, model: filled, id: filled }),
  message: closed(
    {
      input,
      when: words('next', 'after', 'now', 'idle'),
      pin: flag,
      model: filled,
      instructions: text,
      limits: { type: 'object' },
      tools: list(filled),
      metadata,
      patienceMs: whole,
    },
    ['input'],
  ),
  commands: closed({ commands: { type: 'array', items: command, minItems: 1, maxItems: 100 } }, ['commands']),
  answer: closed({ callId: filled, content: text, ok: flag, sessionId: filled }, ['callId', 'content']),
  decision: closed(
    {
      callId: filled,
      allow: flag,
      digest: filled,
      args: { type: 'object' },
      tool: filled,
      class: text,
      n: whole,
      roles: list(text),
      why,
      role: filled,
      sessionId: filled,
      usd: { type: 'number', exclusiveMinimum: 0, maximum: 1_000_000 },
    },
    ['callId', 'allow'],
  ),
  interrupt: closed({ mode: words('stop', 'pause') }),
  fork: closed({
    at: { ...whole, minimum: 1 },
    agent: filled,
    model: filled,
    folder: text,
    labels,
    metadata,
    id: filled,
  }),
  undo: closed({ run: { ...whole, minimum: 1 } }),
  pin: closed({ text: filled, seq: { ...whole, minimum: 1 } }),
  token: closed(
    {
      name: filled,
      role: ROLES,
      roles: list(filled, 100),
      reach: REACH,
      expiresMs: { ...whole, minimum: 1_000 },
      inherit: flag,
    },
    ['name', 'role'],
  ),
  stream: closed({
    sessions: { type: 'object', additionalProperties: whole, maxProperties: 1_000 },
    cards: flag,
    deltas: flag,
  }),
  import: { type: 'object' },
  nothing: closed({}),
} as const satisfies Readonly<Record<string, Schema>>

const limit = { ...whole, minimum: 1, maximum: 1_000 } as const
export const QUERIES = {
  sessions: closed({
    status: words('idle', 'running', 'rescheduling', 'requires_action', 'terminated'),
    agent: filled,
    folder: text,
    q: { ...text, maxLength: 200 },
    outcome: { ...text, maxLength: 200, description: 'One or more, separated by commas.' },
    since: whole,
    until: whole,
    cursor: text,
    limit: { ...limit, maximum: 200 },
    order: words('newest', 'made', 'id'),
    root: filled,
    parent: filled,
  }),
  events: closed({ after: whole, before: whole, limit, types: text, q: { ...text, maxLength: 200 } }),
  state: closed({ at: whole }),
  wait: closed({ wait: { type: 'integer', minimum: 0, maximum: 30 } }),
  stream: closed({ after: whole, deltas: words('0', '1'), store: text }),
  usage: closed({ days: { ...whole, minimum: 1, maximum: 366 } }),
  export: closed({ format: words('jsonl', 'json') }),
  limit: closed({ limit }),
} as const satisfies Readonly<Record<string, Schema>>

const card = open(
  {
    session: text,
    agent: text,
    program: text,
    elsewhere: text,
    root: text,
    status: text,
    due: orNull(number),
    seq: whole,
    at: number,
    cost: number,
    costUsd: number,
    treeCostUsd: number,
    asks: list(text),
    waits: list(text),
    outcome: orNull(text),
    cause: text,
    limit: text,
    unknown: whole,
  },
  ['session', 'agent', 'root', 'status', 'seq', 'at', 'costUsd', 'treeCostUsd', 'asks', 'waits'],
)
const damaged = open({ seq: whole, reason: text }, ['seq', 'reason'])
const event = open({ seq: whole, at: number, epoch: whole, type: text }, ['seq', 'at', 'epoch', 'type'])
const principal = { name: text, role: ROLES, roles: list(text), reach: REACH } as const
const PRINCIPAL = ['name', 'role', 'roles', 'reach'] as const

/** All of these are named in the document. */
export const ANSWERS = {
  Error: open({ error: open({ code: text, message: text }, ['code', 'message']) }, ['error']),
  Health: open(
    {
      ok: flag,
      version: text,
      now: number,
      startedAt: number,
      store: text,
      durability: open({ kind: text, survives: text, appendMs: orNull(number), appendP99Ms: number }, [
        'kind',
        'survives',
      ]),
      trouble: orNull(text),
      code: text,
      hosts: list(text),
      drives: flag,
      driving: whole,
      streams: whole,
      due: whole,
      waitedMs: number,
      network: anything,
    },
    ['ok', 'version', 'now', 'store', 'durability', 'trouble', 'hosts', 'drives'],
  ),
  Me: open({ ...principal, now: number, store: text }, [...PRINCIPAL, 'now', 'store']),
  Card: card,
  Sessions: open({ sessions: list(ref('Card')), next: orNull(text), now: number, store: text }, [
    'sessions',
    'next',
    'now',
    'store',
  ]),
  Pending: open(
    { callId: text, tool: text, args: anything, needs: words('approval', 'answer'), digest: text, sessionId: text },
    ['callId', 'tool', 'args', 'needs', 'sessionId', 'path'],
  ),
  Session: open(
    {
      card: ref('Card'),
      pending: list(ref('Pending')),
      accounts: list(open({ id: text, spentUsd: number }, ['id', 'spentUsd'])),
      head: whole,
      now: number,
      store: text,
      damaged,
    },
    ['card', 'pending', 'accounts', 'head', 'now', 'store'],
  ),
  Event: event,
  Events: open(
    { events: list(ref('Event')), head: whole, after: orNull(whole), before: orNull(whole), scanned: whole, damaged },
    ['events', 'head', 'after', 'before'],
  ),
  Messages: open(
    { messages: { type: 'array', items: open({ role: text, seq: whole }, ['role', 'seq']) }, head: whole },
    ['messages', 'head'],
  ),
  State: open({ seq: whole, head: whole, session: { type: 'object' }, damaged }, ['seq', 'head', 'session']),
  Result: open({ open: flag, result: orNull(open({ sessionId: text, status: text, text }, ['sessionId', 'status'])) }, [
    'open',
    'result',
  ]),
  Receipt: open({ eventId: text, seq: whole, duplicate: flag, queued: flag }, [
    'eventId',
    'seq',
    'duplicate',
    'queued',
  ]),
  Opened: open({ session: text, receipt: orNull(ref('Receipt')) }, ['session', 'receipt']),
  Undone: open({ undone: list(anything) }, ['undone']),
  Pins: open({ pins: list(open({ seq: whole, text, inherited: flag }, ['seq', 'text'])) }, ['pins']),
  Pinned: open({ seq: whole }, ['seq']),
  Done: open({ ok: { const: true } }, ['ok']),
  Removed: open({ removed: list(open({ session: text, at: number, by: text }, ['session', 'at', 'by'])) }, ['removed']),
  PendingList: open({ pending: list(ref('Pending')), total: whole, sessions: list(ref('Card')), now: number }, [
    'pending',
    'now',
  ]),
  Agents: open({ agents: list(open({ name: text, model: orNull(text), tools: list(anything) }, ['name', 'tools'])) }, [
    'agents',
  ]),
  Usage: open(
    {
      rows: { type: 'array', items: open({ day: text, agent: text, model: text, usd: number }, ['day', 'usd']) },
      complete: flag,
      now: number,
      hourUsd: number,
    },
    ['rows', 'complete', 'now', 'hourUsd'],
  ),
  Due: open(
    {
      due: list(open({ session: text, agent: text, due: number, reason: text, tries: whole }, ['session', 'due'])),
      now: number,
    },
    ['due', 'now'],
  ),
  Tokens: open({ tokens: list(open({ ...principal, made: number, expires: number }, [...PRINCIPAL, 'made'])) }, [
    'tokens',
  ]),
  TokenMade: open({ ...principal, made: number, expires: number, token: text }, [...PRINCIPAL, 'made', 'token']),
  Document: open({ openapi: text, paths: { type: 'object' } }, ['openapi', 'paths']),
} as const satisfies Readonly<Record<string, Schema>>
