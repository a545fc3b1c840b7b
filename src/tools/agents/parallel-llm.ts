// `parallel_llm`: many independent prompts to one model at once, and their answers in the order of the prompts. One call for the
// harness. The prompts know nothing of the session that asks, and of each other.
import { hash } from 'node:crypto'
import { Fault } from '../../kernel/failure.ts'
import type { Hint, Model } from '../../ports/model.ts'
import {
  anything,
  type Check,
  type Checks,
  count,
  filled,
  having,
  needed,
  oneOf,
  optionsOf,
  text as words,
  within,
} from '../../options.ts'
import { bound } from '../core/bound.ts'
import { checkShown, filesAt, keepBytes, look, replace, see } from '../files/disk.ts'
import { type Metadata, ModelRetry, type Output, output, ToolFailure } from '../core/output.ts'
import { type Asked, type Asking, askOne, type Entry, NOTHING, sum } from './parallel-ask.ts'
import {
  approvalOfPaths,
  exclusive,
  type Guard,
  guard,
  guardIn,
  GUARD_OPTIONS,
  type GuardOptions,
  locateFor,
  type Place,
} from '../files/paths.ts'
import { type Field, integer, list, object, optional, text } from '../core/schema.ts'
import type { ToolRoot } from '../core/context.ts'
import { defineTool, type StandardSchema, type Tool, type ToolContext } from '../core/tool.ts'
import { toJsonSchema } from '../core/to-json-schema.ts'
import { changeIn, undoChanges } from '../files/undo.ts'

export type ParallelLlmOptions = GuardOptions & {
  /** The one model that is asked, or the route that has it, such as `hint:burst`; the caller cannot choose another. */
  readonly model: Model | Hint
  readonly promptsMax?: number
  /** How often one prompt is tried, from 1 to 10. */
  readonly attemptsMax?: number
  /** Each answer must be JSON that fits. The model is told so. */
  readonly output?: StandardSchema
  /** How often an answer that does not fit is corrected, from 0 to 10. Default 1. */
  readonly outputRetries?: number
  /** What the tool is called, for a harness with several. Default `parallel_llm`. */
  readonly name?: string
  /** What else the model reads about it, such as what its answers look like. */
  readonly description?: string
}

const standard: Check = (value) =>
  (value as Partial<StandardSchema> | null)?.['~standard'] ? null : 'must be a schema of Zod 4 or the like'
const HINTS = oneOf<Hint>({
  'hint:chat': true,
  'hint:reasoning': true,
  'hint:agentic': true,
  'hint:coding': true,
  'hint:burst': true,
  'hint:summarization': true,
  'hint:vision': true,
})
const modelCheck: Check = (value, name, of) =>
  typeof value === 'string'
    ? HINTS(value, name, of)
    : having('give one such as model("openai:gpt-5.1")', 'call')(value, name, of)
const PARALLEL: Checks<Omit<ParallelLlmOptions, keyof GuardOptions>> = {
  model: needed(modelCheck),
  // Their bounds are checked with what they mean.
  promptsMax: anything,
  attemptsMax: anything,
  output: standard,
  outputRetries: count(0, 10),
  name: filled,
  description: words,
}
/** As a built-in it has its own name. */
const { name: _name, description: _description, ...BUILT_IN } = PARALLEL
export const parallelCheck = within<Omit<ParallelLlmOptions, keyof GuardOptions | 'name' | 'description'>>(BUILT_IN)
const checkOptions = optionsOf<ParallelLlmOptions>('parallelLlmTool', { ...GUARD_OPTIONS, ...PARALLEL })

type Source =
  | { readonly type: 'inline'; readonly prompts: readonly string[] }
  | { readonly type: 'file'; readonly path: string }
type Args = {
  readonly source: Source
  readonly system?: string
  readonly output_file?: string
  readonly max_concurrency?: number
}
type Frame = {
  readonly guarded: Guard
  readonly promptsMax: number
  readonly asking: Omit<Asking, 'context' | 'instructions'>
}

const NAME = 'parallel_llm'
const PROMPTS_MAX = 100
const ATTEMPTS_MAX = 4
const CONCURRENCY = 8
const TIMEOUT_MS = 30 * 60_000
const FAILURES_SHOWN_MAX = 10

export function parallelLlmTool(options: ParallelLlmOptions): Tool {
  checkOptions(options)
  const {
    model,
    promptsMax = PROMPTS_MAX,
    attemptsMax = ATTEMPTS_MAX,
    output: shape = null,
    outputRetries = 1,
  } = options
  const { name = NAME, description = '' } = options
  if (!Number.isInteger(attemptsMax) || attemptsMax < 1 || attemptsMax > 10) {
    throw new Fault('invalid_config', 'attemptsMax of parallel_llm must be a whole number from 1 to 10.')
  }
  if (!Number.isInteger(promptsMax) || promptsMax < 1) {
    throw new Fault('invalid_config', 'promptsMax of parallel_llm must be a whole number from 1 on.')
  }
  if (shape !== null) toJsonSchema(shape, SHAPE)
  const frame = { promptsMax, asking: { model, output: shape, attemptsMax, outputRetries } }
  return made({ guarded: guard(options), ...frame }, name, description)
}

function made(frame: Frame, name: string, description: string): Tool {
  const { guarded, promptsMax } = frame
  const tool = defineTool<Args>({
    name,
    description: `Asks a language model up to ${promptsMax} independent questions at once. It knows nothing of this conversation and has no tools: each prompt must be complete in itself. Returns one entry for each prompt, in order: {index, ok, result or error, attempts}. With output_file the entries go there, and only a summary comes back.${description === '' ? '' : ` ${description}`}`,
    input: inputOf(promptsMax),
    aliases: { output_path: 'output_file', outputFile: 'output_file' },
    timeoutMs: TIMEOUT_MS,
    sequential: ({ output_file }) => output_file !== undefined,
    approval: ({ output_file: file }) => (file === undefined ? 'auto' : approvalOfPaths(guarded, [file])),
    undo: (metadata, context) => undoChanges(guarded, changeIn(metadata), context),
    execute: (args, context) => execute(frame, args, context),
  })
  const rooted = (root: ToolRoot): Tool => made({ ...frame, guarded: guardIn(guarded, root) }, name, description)
  const filesChanged: Tool['filesChanged'] = async (args) => {
    const { output_file: file } = args as Args
    return file === undefined ? [] : filesAt(guarded, [file])
  }
  return { ...tool, kind: 'parallel_llm', root: guarded.root, filesChanged, rooted }
}

async function execute(frame: Frame, args: Args, context: ToolContext): Promise<Output> {
  const { guarded, asking } = frame
  const prompts = await promptsOf(frame, args.source, context)
  // Where it will go is settled before anything is spent.
  const place = args.output_file === undefined ? null : await locateFor(guarded, args.output_file, 'write', context)
  if (place) checkShown(guarded, place, await look(guarded, place), context)
  const instructions = instructionsOf(args.system ?? '', asking.output)
  const answers = await askAll({ ...asking, instructions, context }, prompts, args.max_concurrency ?? CONCURRENCY)
  const entries = answers.map(({ entry }) => entry)
  const spent = answers.reduce((all, one) => sum(all, one.spent), NOTHING)
  const failed = entries.filter(({ ok }) => !ok)
  const counts = { prompts: entries.length, succeeded: entries.length - failed.length, failed: failed.length }
  const attempts = entries.reduce((all, entry) => all + entry.attempts, 0)
  const metadata: Metadata = { ...counts, attempts, usage: { ...spent.usage }, cost: spent.cost }
  const report = { metadata, context, ok: counts.succeeded > 0 }
  if (place === null) return shown({ ...counts, results: entries }, report)
  const written = await save(guarded, place, entries, context).catch((error: unknown) => error)
  if (written instanceof Error) {
    // The answers are paid for: if they cannot be in the file, they are here.
    const error = `Nothing was written to ${place.shown}: ${written.message}`
    return shown({ ...counts, error, results: entries }, { ...report, ok: false })
  }
  const failures = failed.slice(0, FAILURES_SHOWN_MAX)
  const changed = { ...metadata, ...(written as Metadata) }
  return shown({ ...counts, output_file: place.shown, failures }, { ...report, metadata: changed })
}

/** At most so many at a time. The first that is stopped stops all. */
async function askAll(asking: Asking, prompts: readonly string[], concurrency: number): Promise<readonly Asked[]> {
  const answers: Asked[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < prompts.length) {
      const index = next
      next += 1
      answers[index] = await askOne(asking, prompts[index] ?? '', index)
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, prompts.length) }, lane))
  return answers
}

type Report = { readonly ok: boolean; readonly metadata: Metadata; readonly context: ToolContext }

function shown(summary: object, { ok, metadata, context }: Report): Output {
  const { content, metadata: cut } = bound(JSON.stringify(summary, null, 1), context)
  return output({ ok, content, metadata: { ...metadata, ...cut } })
}

/** In one step or not at all. What is returned is what an undo needs. */
function save(guarded: Guard, place: Place, entries: readonly Entry[], context: ToolContext): Promise<Metadata> {
  return exclusive(guarded, place, async () => {
    const seen = await look(guarded, place)
    checkShown(guarded, place, seen, context)
    const bytes = Buffer.from(`${JSON.stringify(entries, null, 1)}\n`)
    const replaced = seen ? keepBytes(context, seen.bytes) : null
    const after = hash('sha256', bytes)
    await replace({ guarded, place, seen, bytes, after, context })
    return { path: place.shown, hash: after, before: seen?.hash ?? null, replaced }
  })
}

async function promptsOf(
  { guarded, promptsMax }: Frame,
  source: Source,
  context: ToolContext,
): Promise<readonly string[]> {
  if (source.type === 'inline') return source.prompts
  const { bytes } = await see(guarded, await locateFor(guarded, source.path, 'read', context))
  const prompts = stringsIn(bytes.toString())
  if (prompts === null) {
    throw new ToolFailure(
      'InvalidInput',
      `"${source.path}" is neither a JSON list of strings nor one JSON string a line.`,
    )
  }
  if (prompts.length === 0 || prompts.length > promptsMax) {
    throw new ModelRetry(
      `"${source.path}" holds ${prompts.length} prompts; 1 to ${promptsMax} can be asked in one call.`,
    )
  }
  return prompts
}

/** One list, or one string a line. Null for anything else, and for a prompt that says nothing. */
function stringsIn(source: string): readonly string[] | null {
  try {
    const lines = source.trimStart().startsWith('[') ? null : source.split('\n').filter((line) => line.trim() !== '')
    const values: unknown = lines ? lines.map((line): unknown => JSON.parse(line)) : JSON.parse(source)
    return Array.isArray(values) && values.every(isPrompt) ? values : null
  } catch {
    return null
  }
}

function isPrompt(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}

/** How a refusal names the schema. */
const SHAPE = 'The output schema of parallel_llm'

function instructionsOf(system: string, shape: StandardSchema | null): string {
  if (shape === null) return system
  const schema = toJsonSchema(shape, SHAPE)
  const fit = schema ? ` that fits this JSON Schema:\n${JSON.stringify(schema)}` : '.'
  return `${system}\n\nAnswer with one JSON value and nothing else${fit}`.trim()
}

function inputOf(promptsMax: number) {
  const prompt = text('One prompt, complete in itself.', { min: 1 })
  const inline = object({ type: only('inline'), prompts: list('The prompts.', prompt, { min: 1, max: promptsMax }) })
  const file = object({
    type: only('file'),
    path: text('A file that holds a JSON list of strings, or one JSON string a line.', { min: 1 }),
  })
  return object({
    source: either<Source>('Where the prompts are.', [inline, file]),
    system: optional(text('Instructions that every prompt is asked with.')),
    output_file: optional(text('Write the entries to this file, as JSON, instead of returning them.', { min: 1 })),
    max_concurrency: optional(integer(`How many at a time. Default ${CONCURRENCY}.`, { min: 1, max: 32 })),
  })
}

function only<const T extends string>(value: T): Field<T> {
  return {
    schema: { const: value },
    required: true,
    check: (given) => (given === value ? { value } : { issues: [{ path: [], message: `must be "${value}"` }] }),
  }
}

/** The complaints are those of the alternative that was named. */
function either<T extends { readonly type: string }>(description: string, options: readonly Field<T>[]): Field<T> {
  return {
    schema: { description, anyOf: options.map(({ schema }) => schema) },
    required: true,
    check: (value) => {
      const checks = options.map((option) => option.check(value))
      const named = checks.find(({ issues }) => !issues?.some(({ path }) => path.length === 0 || path[0] === 'type'))
      return named ?? { issues: [{ path: ['type'], message: 'must be "inline", with prompts, or "file", with path' }] }
    },
  }
}
