// Structured output: how an answer of a given schema is requested, and how a reply is judged. Parsing is tolerant,
// validation is strict, and an invalid value is never repaired. Pure, except for the user's `validate`.
import type { Json, Verdict } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { OutputSchema, Reply } from '../ports/model.ts'
import { LEAKED, looksLikeCall } from './protocols/leaked-calls.ts'
import { isStrict, tightenSchema } from './protocols/strict-schema.ts'
import { readTolerantJson } from '../view/tolerant-json.ts'
import { hasRootChoice } from './protocols/tool-schema.ts'
import { isObject } from '../view/untrusted-json.ts'
import { textOf } from '../view/shown-text.ts'

const MODES = ['text', 'native', 'tool', 'prompted', 'auto'] as const
/** How an answer by a schema is asked for: by the format of the host, by a tool, or in words. */
export type OutputMode = (typeof MODES)[number]

type ValidationResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }

/** The required shape of a final answer. `validate` is the user's schema. */
export type OutputOptions = {
  readonly mode?: OutputMode
  readonly schema: Json
  readonly validate: (value: unknown) => ValidationResult | Promise<ValidationResult>
}

/** How the harness requests structured output from one model. */
export type OutputPlan = {
  readonly mode: 'native' | 'tool' | 'prompted'
  /** The schema sent with the request; null for `prompted`, which uses instructions only. */
  readonly asked: OutputSchema | null
  readonly instructions: string
  readonly check: (value: Json) => Promise<{ readonly output: Json } | { readonly problem: string }>
}

export const FINAL_RESULT = 'final_result'
/** The text before the schema in instructions. */
export const PROMPTED = 'Answer with nothing but JSON of this schema:'

/** The abilities of a model that matter for requests. */
export type ModelAbilities = {
  readonly name: string
  readonly native: 'default' | 'possible' | 'no'
  readonly images?: boolean
  /** Absent if not known. */
  readonly reasoning?: boolean
}

export function planOutput(
  { mode = 'auto', schema, validate }: OutputOptions,
  able: ModelAbilities,
): OutputPlan | null {
  if (!MODES.includes(mode))
    throw new Fault('invalid_config', `There is no output mode "${String(mode)}". Choose one of: ${MODES.join(', ')}.`)
  if (mode === 'text') return null
  if (mode === 'native' && able.native === 'no') {
    throw new Fault('invalid_config', `${able.name} has no native structured output. Use the mode "tool" or "auto".`)
  }
  const settled = mode === 'auto' ? (able.native === 'default' ? 'native' : 'tool') : mode
  const wrapped = !isObjectSchema(schema)
  const shape = tightenSchema(wrapped ? wrapSchema(schema) : schema)
  const check: OutputPlan['check'] = async (value) => {
    try {
      const checked = await validate(wrapped ? unwrapValue(value) : value)
      return checked.issues ? { problem: problemOf(checked.issues) } : { output: asJson(checked.value) }
    } catch (error) {
      // The reply was paid for: a validator that throws must not lose it.
      return { problem: `- <root>: the check failed: ${error instanceof Error ? error.message : String(error)}` }
    }
  }
  const asked =
    settled === 'prompted' ? null : { mode: settled, name: FINAL_RESULT, schema: shape, strict: isStrict(shape) }
  const instructions = settled === 'prompted' ? `${PROMPTED}\n${JSON.stringify(shape)}` : ''
  return { mode: settled, asked, instructions, check }
}

/** Judges a reply. `tools` are the names of the run's tools; on `continue` the caller runs their calls. */
export async function judgeOutput(plan: OutputPlan, reply: Reply, tools: readonly string[] = []): Promise<Verdict> {
  const text = textOf(reply.parts)
  // A retry for the schema would only be refused again.
  if (reply.finish === 'refusal') return refusalVerdict(text)
  if (plan.mode === 'tool') return judgeCalls(plan, reply, text)
  if (reply.calls.length > 0) return { type: 'continue' }
  if (text.trim() === '') return judgeEmpty(reply)
  // A leaked call may also fit the schema.
  if (tools.length > 0 && looksLikeCall(text, tools)) return LEAKED
  const value = readTolerantJson(text, reply.finish === 'length')
  if (value === undefined)
    return { type: 'retry_user_message', text: `${whyUnreadable(reply)} Answer with the JSON alone.` }
  const checked = await plan.check(value)
  return 'output' in checked
    ? { type: 'final', output: checked.output }
    : { type: 'retry_user_message', text: misfitText(checked.problem) }
}

async function judgeCalls(plan: OutputPlan, reply: Reply, text: string): Promise<Verdict> {
  const finals = reply.calls.filter(({ tool }) => tool === FINAL_RESULT).length
  if (reply.calls.length === 0) {
    if (text.trim() === '' && reply.finish !== 'stop') return judgeEmpty(reply)
    return { type: 'retry_user_message', text: `Call ${FINAL_RESULT} with the answer.` }
  }
  if (finals === 0) return { type: 'continue' }
  if (reply.calls.length > 1) {
    const call = reply.calls.findIndex(({ tool }) => tool === FINAL_RESULT)
    return { type: 'retry_tool_output', call, text: finals > 1 ? TWICE : MIXED }
  }
  const value = readTolerantJson(reply.calls[0]?.args || '{}', reply.finish === 'length')
  if (value === undefined) return { type: 'retry_tool_output', call: 0, text: whyUnreadable(reply) }
  const checked = await plan.check(value)
  return 'output' in checked
    ? { type: 'final', output: checked.output }
    : { type: 'retry_tool_output', call: 0, text: misfitText(checked.problem) }
}

const MIXED = `Nothing of this reply ran: ${FINAL_RESULT} must be called alone. Call the other tools first, or give the answer now.`
const TWICE = `Nothing of this reply was taken: call ${FINAL_RESULT} once, with the whole answer.`

/** Judges a reply without text and calls. One that was cut off is requested again with more tokens. */
export function judgeEmpty({ finish }: Reply): Verdict {
  if (finish !== 'refusal') return finish === 'length' ? { type: 'empty', boost: true } : { type: 'empty' }
  return refusalVerdict('')
}

function refusalVerdict(text: string): Verdict {
  const said = text.trim()
  const reason =
    said === ''
      ? 'The model refused to answer, and did not say why.'
      : `The model refused to answer: ${said.slice(0, REFUSAL_CHARS_MAX)}`
  return {
    type: 'stop',
    reason,
    as: { type: 'failed', reason: 'refusal', failure: { kind: 'Failed', message: reason } },
  }
}

function whyUnreadable({ finish }: Reply): string {
  return finish === 'length' ? 'The answer was cut off at its longest. Give a shorter one.' : 'The answer is not JSON.'
}

function misfitText(problem: string): string {
  return `The answer does not fit its schema.\n${problem}\nCorrect it and answer again.`
}

const PROBLEMS_MAX = 20
/** The whole text is kept in the reply. */
const REFUSAL_CHARS_MAX = 1_000

export function problemOf(
  issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[],
): string {
  const lines = issues.slice(0, PROBLEMS_MAX).map(({ message, path = [] }) => {
    const where = path
      .map((step) => String(step !== null && typeof step === 'object' && 'key' in step ? step.key : step))
      .join('.')
    return `- ${where === '' ? '<root>' : where}: ${message.slice(0, 200)}`
  })
  return lines.join('\n')
}

function isObjectSchema(schema: Json): boolean {
  return isObject(schema) && schema['type'] === 'object' && !hasRootChoice(schema)
}

/** Providers require an object at the root. Definitions stay at the root, where references look for them. */
function wrapSchema(schema: Json): Json {
  const { $defs, definitions, $schema: _, ...inner } = (schema ?? {}) as Readonly<Record<string, Json>>
  const moved = { ...($defs === undefined ? {} : { $defs }), ...(definitions === undefined ? {} : { definitions }) }
  const shape = { type: 'object', properties: { value: inner }, required: ['value'], additionalProperties: false }
  return JSON.parse(JSON.stringify({ ...shape, ...moved }), (key, value: Json) => {
    const isOwn = key === '$ref' && typeof value === 'string' && /^#(?!\/(\$defs|definitions)\/)/.test(value)
    return isOwn ? `#/properties/value${value.slice(1)}` : value
  }) as Json
}

/** Also accepts an answer without the wrapper. */
function unwrapValue(value: Json): Json {
  const isWrapped = isObject(value) && 'value' in value && Object.keys(value).length === 1
  return isWrapped ? (value as { readonly value: Json }).value : value
}

/** The validated value as JSON for the log. */
function asJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value) ?? 'null') as Json
}
