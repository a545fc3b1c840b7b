// The JSON Schemas (2020-12) of what routes take, as the server checks requests by them, and the names of what they give. A field that a
// body or a query does not name is refused. The schemas of answers are wire-answers.ts.
import type { Json } from '../kernel/index.ts'
import { PIN_CHARS_MAX } from '../view/text.ts'

export type Schema = { readonly [keyword: string]: Json }

export const text = { type: 'string' } as const
const filled = { type: 'string', minLength: 1, maxLength: 512 } as const
export const flag = { type: 'boolean' } as const
export const whole = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const
const list = (items: Schema, maxItems = 1_000): Schema => ({ type: 'array', items, maxItems })
export const words = (...values: readonly string[]): Schema => ({ type: 'string', enum: [...values] })

/** Refuses what it does not name. */
const closed = (properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema => {
  return { type: 'object', properties, required: [...required], additionalProperties: false }
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
/** A message of a conversation from elsewhere; what is wrong with one is said by the library, which names it. */
const brought: Schema = { type: 'object', properties: { role: text }, required: ['role'] }
const settings = closed({
  outputTokensMax: { ...whole, minimum: 1 },
  temperature: { type: 'number' },
  topP: { type: 'number' },
  seed: { type: 'integer' },
  stop: list(text, 100),
  toolChoice: { anyOf: [words('auto', 'required', 'none'), closed({ tool: filled }, ['tool'])] },
  parallelToolCalls: flag,
  reasoning: { anyOf: [text, closed({ budgetTokens: whole }, ['budgetTokens'])] },
})
const why = { type: 'string', maxLength: 4_096 } as const
export const ROLES = words('viewer', 'operator', 'approver', 'admin')
export const REACH = words('own', 'all')

export const BODIES = {
  open: closed({
    agent: filled,
    input,
    folder: text,
    labels,
    metadata,
    model: filled,
    id: filled,
    messages: list(brought, 10_000),
  }),
  message: closed(
    {
      input,
      when: words('next', 'after', 'now', 'idle'),
      pin: flag,
      model: filled,
      instructions: text,
      limits: { type: 'object' },
      tools: list(filled),
      settings,
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
  pin: closed({ text: { ...filled, maxLength: PIN_CHARS_MAX }, seq: { ...whole, minimum: 1 } }),
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

const ORDER =
  '`newest` (the default): the last event first; a session that grows while pages are read moves to the front, and may be missed. ' +
  '`made`: the last that was made in this store first. `id`: by id, with children among them. With these two, pages that are read while sessions grow miss none and repeat none.'
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
    order: { ...words('newest', 'made', 'id'), description: ORDER },
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

/** The names under which the OpenAPI document has the schemas of answers. */
export type AnswerName =
  | 'Error'
  | 'Health'
  | 'Me'
  | 'Card'
  | 'Sessions'
  | 'Pending'
  | 'Session'
  | 'Event'
  | 'Events'
  | 'Message'
  | 'Messages'
  | 'State'
  | 'Call'
  | 'Result'
  | 'Receipt'
  | 'Opened'
  | 'Undone'
  | 'Pins'
  | 'Pinned'
  | 'Done'
  | 'Removed'
  | 'PendingList'
  | 'Agents'
  | 'Usage'
  | 'Due'
  | 'Tokens'
  | 'TokenMade'
  | 'Document'
