// The JSON Schemas (2020-12) by which the server checks bodies and queries, and the names of the answer schemas.
// Unknown fields are refused. The schemas of answers are in wire-answers.ts.
import type { Json } from '../kernel/index.ts'
import { PIN_CHARS_MAX } from '../view/shown-text.ts'

export type WireSchema = { readonly [keyword: string]: Json }

export const textSchema = { type: 'string' } as const
const filled = { type: 'string', minLength: 1, maxLength: 512 } as const
export const flagSchema = { type: 'boolean' } as const
export const wholeSchema = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const
const boundedList = (items: WireSchema, maxItems = 1_000): WireSchema => ({ type: 'array', items, maxItems })
export const oneOfWords = (...values: readonly string[]): WireSchema => ({ type: 'string', enum: [...values] })

/** An object schema that refuses unknown fields. */
const closedObject = (
  properties: Readonly<Record<string, WireSchema>>,
  required: readonly string[] = [],
): WireSchema => {
  return { type: 'object', properties, required: [...required], additionalProperties: false }
}

export const LABELS_MAX = 16
const labels: WireSchema = { type: 'object', additionalProperties: { type: 'string' }, maxProperties: LABELS_MAX }
const metadata: WireSchema = { type: 'object' }
/** The input of a message. The library checks its parts and says how to correct them. */
const input: WireSchema = {
  anyOf: [textSchema, { type: 'object' }, boundedList({ type: 'object', required: ['type'] }, 200)],
}
const command: WireSchema = {
  type: 'object',
  properties: { type: oneOfWords('message', 'redirect', 'pause', 'resume', 'cancel', 'withdraw') },
  required: ['type'],
}
/** A message of an imported conversation. The library checks it and names the wrong one. */
const broughtMessage: WireSchema = { type: 'object', properties: { role: textSchema }, required: ['role'] }
const settings = closedObject({
  outputTokensMax: { ...wholeSchema, minimum: 1 },
  temperature: { type: 'number' },
  topP: { type: 'number' },
  seed: { type: 'integer' },
  stop: boundedList(textSchema, 100),
  toolChoice: { anyOf: [oneOfWords('auto', 'required', 'none'), closedObject({ tool: filled }, ['tool'])] },
  parallelToolCalls: flagSchema,
  reasoning: { anyOf: [textSchema, closedObject({ budgetTokens: wholeSchema }, ['budgetTokens'])] },
})
const why = { type: 'string', maxLength: 4_096 } as const
export const ROLE_SCHEMA = oneOfWords('viewer', 'operator', 'approver', 'admin')
export const REACH_SCHEMA = oneOfWords('own', 'all')

export const BODIES = {
  open: closedObject({
    agent: filled,
    input,
    folder: textSchema,
    labels,
    metadata,
    model: filled,
    id: filled,
    messages: boundedList(broughtMessage, 10_000),
  }),
  message: closedObject(
    {
      input,
      when: oneOfWords('next', 'after', 'now', 'idle'),
      pin: flagSchema,
      model: filled,
      instructions: textSchema,
      limits: { type: 'object' },
      tools: boundedList(filled),
      settings,
      metadata,
      patienceMs: wholeSchema,
      at: { ...wholeSchema, description: 'No run reads it before this time, in ms since 1970.' },
    },
    ['input'],
  ),
  cron: closedObject(
    {
      action: oneOfWords('add', 'on', 'off', 'run', 'remove'),
      session: filled,
      folder: textSchema,
      job: { type: 'object' },
    },
    ['action'],
  ),
  letter: closedObject({ lane: filled, key: filled, decision: oneOfWords('retry', 'drop') }, [
    'lane',
    'key',
    'decision',
  ]),
  commands: closedObject({ commands: { type: 'array', items: command, minItems: 1, maxItems: 100 } }, ['commands']),
  answer: closedObject({ callId: filled, content: textSchema, ok: flagSchema, sessionId: filled }, [
    'callId',
    'content',
  ]),
  decision: closedObject(
    {
      callId: filled,
      allow: flagSchema,
      digest: filled,
      args: { type: 'object' },
      tool: filled,
      class: textSchema,
      n: wholeSchema,
      roles: boundedList(textSchema),
      why,
      role: filled,
      sessionId: filled,
      usd: { type: 'number', exclusiveMinimum: 0, maximum: 1_000_000 },
    },
    ['callId', 'allow'],
  ),
  schedule: closedObject({ at: wholeSchema, inMs: wholeSchema, reason: textSchema, key: textSchema }),
  unschedule: closedObject({ key: textSchema }, ['key']),
  rename: closedObject({ title: filled }, ['title']),
  pursue: closedObject(
    {
      // The library checks the lengths of both, and says what to leave out.
      description: { ...textSchema, description: 'What must be reached: at most 8,000 characters.' },
      rubric: { ...textSchema, description: 'The criteria that the result must meet: at most 64 KB.' },
      roundsMax: { ...wholeSchema, minimum: 1, maximum: 20 },
      usd: { type: 'number', exclusiveMinimum: 0, description: 'For all rounds and graders.' },
    },
    ['description', 'rubric'],
  ),
  interrupt: closedObject({ mode: oneOfWords('stop', 'pause') }),
  fork: closedObject({
    at: { ...wholeSchema, minimum: 1 },
    agent: filled,
    model: filled,
    folder: textSchema,
    labels,
    metadata,
    id: filled,
  }),
  whatIf: closedObject(
    {
      at: { ...wholeSchema, minimum: 1, description: 'The last event that stays as it was.' },
      model: {
        ...filled,
        description: 'It answers for every agent. Absent: the recording does, and no model is asked.',
      },
      instructions: textSchema,
      message: input,
      tools: { type: 'object', additionalProperties: oneOfWords('recorded', 'live', 'recorded_or_live') },
      runs: oneOfWords('one', 'all'),
      usd: { type: 'number', exclusiveMinimum: 0, maximum: 1_000_000 },
    },
    ['at'],
  ),
  undo: closedObject({ run: { ...wholeSchema, minimum: 1 } }),
  pin: closedObject({ text: { ...filled, maxLength: PIN_CHARS_MAX }, seq: { ...wholeSchema, minimum: 1 } }),
  token: closedObject(
    {
      name: filled,
      role: ROLE_SCHEMA,
      roles: boundedList(filled, 100),
      reach: REACH_SCHEMA,
      expiresMs: { ...wholeSchema, minimum: 1_000 },
      inherit: flagSchema,
    },
    ['name', 'role'],
  ),
  stream: closedObject({
    sessions: { type: 'object', additionalProperties: wholeSchema, maxProperties: 1_000 },
    cards: flagSchema,
    deltas: flagSchema,
  }),
  // An object is a file of an earlier version.
  import: { anyOf: [{ type: 'array' }, { type: 'object' }] },
  nothing: closedObject({}),
} as const satisfies Readonly<Record<string, WireSchema>>

const ORDER =
  '`newest` (the default): the last event first; a session that grows while pages are read moves to the front, and may be missed. ' +
  '`made`: the last that was made in this store first. `id`: by id, with children among them. With these two, pages that are read while sessions grow miss none and repeat none.'
const limit = { ...wholeSchema, minimum: 1, maximum: 1_000 } as const
export const QUERIES = {
  sessions: closedObject({
    status: oneOfWords('idle', 'running', 'rescheduling', 'requires_action', 'terminated'),
    agent: filled,
    folder: textSchema,
    q: { ...textSchema, maxLength: 200 },
    outcome: { ...textSchema, maxLength: 200, description: 'One or more, separated by commas.' },
    since: wholeSchema,
    until: wholeSchema,
    cursor: textSchema,
    limit: { ...limit, maximum: 200 },
    order: { ...oneOfWords('newest', 'made', 'id'), description: ORDER },
    root: filled,
    parent: filled,
  }),
  events: closedObject({
    after: wholeSchema,
    before: wholeSchema,
    limit,
    types: textSchema,
    q: { ...textSchema, maxLength: 200 },
  }),
  session: closedObject({ include: oneOfWords('pursuit') }),
  state: closedObject({ at: wholeSchema }),
  wait: closedObject({ wait: { type: 'integer', minimum: 0, maximum: 30 } }),
  stream: closedObject({ after: wholeSchema, deltas: oneOfWords('0', '1'), store: textSchema }),
  usage: closedObject({ days: { ...wholeSchema, minimum: 1, maximum: 366 } }),
  export: closedObject({ format: oneOfWords('jsonl', 'json') }),
  limit: closedObject({ limit }),
  pending: closedObject({ cursor: textSchema, limit }),
  cron: closedObject({ cursor: filled, limit }),
  triggers: closedObject({
    source: filled,
    decision: oneOfWords('drop', 'notify', 'react', 'escalate', 'waiting', 'deferred', 'dead'),
  }),
  evals: closedObject({ suite: filled }),
  evalRun: closedObject({ before: filled }),
} as const satisfies Readonly<Record<string, WireSchema>>

/** The schema names of answers in the OpenAPI document. */
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
  | 'Triggered'
  | 'Triggers'
  | 'WhatIf'
  | 'Letters'
  | 'LetterDecided'
  | 'Evals'
  | 'EvalRun'
  | 'Case'
  | 'Undone'
  | 'Pins'
  | 'Pinned'
  | 'Scheduled'
  | 'Unscheduled'
  | 'Renamed'
  | 'Pursued'
  | 'Done'
  | 'Removed'
  | 'PendingList'
  | 'Agents'
  | 'Usage'
  | 'Due'
  | 'CronJobs'
  | 'CronChanged'
  | 'Tokens'
  | 'TokenMade'
  | 'Document'
