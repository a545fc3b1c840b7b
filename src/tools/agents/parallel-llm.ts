// The tool `parallel_llm`: sends many independent prompts to one model at once and returns the answers in the order of
// the prompts. For the harness it is one call. The prompts know neither the calling session nor each other.
import { hash } from 'node:crypto'
import { Fault } from '../../kernel/failure.ts'
import type { Hint, Model } from '../../ports/model.ts'
import {
  anyCheck,
  type Check,
  type Checks,
  countCheck,
  nonEmptyCheck,
  methodsCheck,
  requiredCheck,
  oneOf,
  optionsChecker,
  textCheck as words,
  optionsCheck,
} from '../../options.ts'
import { boundContent } from '../core/bound-content.ts'
import {
  checkApprovedFile,
  fileStatesAt,
  keepBytes,
  readBeforeWrite,
  replaceSeenFile,
  readFileAt,
} from '../files/guarded-disk.ts'
import { type OutputMetadata, ModelRetry, type Output, output, ToolFailure } from '../core/tool-output.ts'
import {
  type PromptAnswer,
  type PromptSetup,
  askPrompt,
  type PromptEntry,
  NO_SPENDING,
  sumSpending,
} from './parallel-ask.ts'
import {
  approvalOfPaths,
  runExclusive,
  type PathGuard,
  createPathGuard,
  guardInFolder,
  GUARD_OPTIONS,
  type PathGuardOptions,
  locateForCall,
  type GuardedPath,
} from '../files/path-guard.ts'
import { type Field, integerField, listField, objectField, optionalField, textField } from '../core/argument-schema.ts'
import type { ToolRoot } from '../core/tool-context.ts'
import { defineTool, type StandardSchema, type Tool, type ToolContext } from '../core/tool.ts'
import { toJsonSchema } from '../core/to-json-schema.ts'
import { changeIn, undoChanges } from '../files/undo-changes.ts'

/**
 * Options of `parallelLlmTool`: the model that is asked, how many questions at once, and the files it may be given.
 */
export type ParallelLlmOptions = PathGuardOptions & {
  /** The model to ask, or the route that names it, such as `hint:burst`. The caller cannot choose another. */
  readonly model: Model | Hint
  /** How many prompts one call may have. */
  readonly promptsMax?: number
  /** The limit of tries for one prompt, from 1 to 10. */
  readonly attemptsMax?: number
  /** Each answer must be JSON that fits this schema. The model is told the schema. */
  readonly output?: StandardSchema
  /** The limit of corrections of an answer that does not fit, from 0 to 10. Default 1. */
  readonly outputRetries?: number
  /** The name of the tool, for a harness with several. Default `parallel_llm`. */
  readonly name?: string
  /** More text for the tool's description, such as the form of its answers. */
  readonly description?: string
}

const standardSchemaCheck: Check = (value) =>
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
    : methodsCheck('give one such as model("openai:gpt-5.1")', 'call')(value, name, of)
const PARALLEL: Checks<Omit<ParallelLlmOptions, keyof PathGuardOptions>> = {
  model: requiredCheck(modelCheck),
  // The bounds are checked where the values are used.
  promptsMax: anyCheck,
  attemptsMax: anyCheck,
  output: standardSchemaCheck,
  outputRetries: countCheck(0, 10),
  name: nonEmptyCheck,
  description: words,
}
/** The built-in tool has a fixed name and description. */
const { name: _name, description: _description, ...BUILT_IN } = PARALLEL
export const parallelCheck =
  optionsCheck<Omit<ParallelLlmOptions, keyof PathGuardOptions | 'name' | 'description'>>(BUILT_IN)
const checkOptions = optionsChecker<ParallelLlmOptions>('parallelLlmTool', { ...GUARD_OPTIONS, ...PARALLEL })

type PromptSource =
  | { readonly type: 'inline'; readonly prompts: readonly string[] }
  | { readonly type: 'file'; readonly path: string }
type Args = {
  readonly source: PromptSource
  readonly system?: string
  readonly output_file?: string
  readonly max_concurrency?: number
}
type ParallelSetup = {
  readonly guarded: PathGuard
  readonly promptsMax: number
  readonly asking: Omit<PromptSetup, 'context' | 'instructions'>
}

const NAME = 'parallel_llm'
const PROMPTS_MAX = 100
const ATTEMPTS_MAX = 4
const CONCURRENCY = 8
const TIMEOUT_MS = 30 * 60_000
const FAILURES_SHOWN_MAX = 10

/** A tool that asks a cheap model many questions at once, each about a file or a text. */
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
  return makeParallelTool({ guarded: createPathGuard(options), ...frame }, name, description)
}

function makeParallelTool(frame: ParallelSetup, name: string, description: string): Tool {
  const { guarded, promptsMax } = frame
  const tool = defineTool<Args>({
    name,
    description: `Asks a language model up to ${promptsMax} independent questions at once. It knows nothing of this conversation and has no tools: each prompt must be complete in itself. Returns one entry for each prompt, in order: {index, ok, result or error, attempts}. With output_file the entries go there, and only a summary comes back.${description === '' ? '' : ` ${description}`}`,
    input: inputSchema(promptsMax),
    aliases: { output_path: 'output_file', outputFile: 'output_file' },
    timeoutMs: TIMEOUT_MS,
    sequential: ({ output_file }) => output_file !== undefined,
    approval: ({ output_file: file }) => (file === undefined ? 'auto' : approvalOfPaths(guarded, [file])),
    undo: (metadata, context) => undoChanges(guarded, changeIn(metadata), context),
    execute: (args, context) => execute(frame, args, context),
  })
  const rooted = (root: ToolRoot): Tool =>
    makeParallelTool({ ...frame, guarded: guardInFolder(guarded, root) }, name, description)
  const filesChanged: Tool['filesChanged'] = async (args) => {
    const { output_file: file } = args as Args
    return file === undefined ? [] : fileStatesAt(guarded, [file])
  }
  return { ...tool, kind: 'parallel_llm', root: guarded.root, filesChanged, rooted }
}

async function execute(frame: ParallelSetup, args: Args, context: ToolContext): Promise<Output> {
  const { guarded, asking } = frame
  const prompts = await readPrompts(frame, args.source, context)
  // The output path is checked before any money is spent.
  const place = args.output_file === undefined ? null : await locateForCall(guarded, args.output_file, 'write', context)
  if (place) checkApprovedFile(guarded, place, await readBeforeWrite(guarded, place), context)
  const instructions = instructionsOf(args.system ?? '', asking.output)
  const answers = await askAllPrompts(
    { ...asking, instructions, context },
    prompts,
    args.max_concurrency ?? CONCURRENCY,
  )
  const entries = answers.map(({ entry }) => entry)
  const spent = answers.reduce((all, one) => sumSpending(all, one.spent), NO_SPENDING)
  const failed = entries.filter(({ ok }) => !ok)
  const counts = { prompts: entries.length, succeeded: entries.length - failed.length, failed: failed.length }
  const attempts = entries.reduce((all, entry) => all + entry.attempts, 0)
  const metadata: OutputMetadata = { ...counts, attempts, usage: { ...spent.usage }, cost: spent.cost }
  const report = { metadata, context, ok: counts.succeeded > 0 }
  if (place === null) return reportOutput({ ...counts, results: entries }, report)
  const written = await saveEntries(guarded, place, entries, context).catch((error: unknown) => error)
  if (written instanceof Error) {
    // The answers are paid for: if they cannot be written to the file, the result holds them.
    const error = `Nothing was written to ${place.shown}: ${written.message}`
    return reportOutput({ ...counts, error, results: entries }, { ...report, ok: false })
  }
  const failures = failed.slice(0, FAILURES_SHOWN_MAX)
  const changed = { ...metadata, ...(written as OutputMetadata) }
  return reportOutput({ ...counts, output_file: place.shown, failures }, { ...report, metadata: changed })
}

/** Runs at most `concurrency` prompts at a time. The first prompt that is stopped stops all. */
async function askAllPrompts(
  asking: PromptSetup,
  prompts: readonly string[],
  concurrency: number,
): Promise<readonly PromptAnswer[]> {
  const answers: PromptAnswer[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < prompts.length) {
      const index = next
      next += 1
      answers[index] = await askPrompt(asking, prompts[index] ?? '', index)
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, prompts.length) }, lane))
  return answers
}

type ParallelReport = { readonly ok: boolean; readonly metadata: OutputMetadata; readonly context: ToolContext }

function reportOutput(summary: object, { ok, metadata, context }: ParallelReport): Output {
  const { content, metadata: cut } = boundContent(JSON.stringify(summary, null, 1), context)
  return output({ ok, content, metadata: { ...metadata, ...cut } })
}

/** Writes the file in one step or not at all. Returns the metadata that an undo needs. */
function saveEntries(
  guarded: PathGuard,
  place: GuardedPath,
  entries: readonly PromptEntry[],
  context: ToolContext,
): Promise<OutputMetadata> {
  return runExclusive(guarded, place, async () => {
    const seen = await readBeforeWrite(guarded, place)
    checkApprovedFile(guarded, place, seen, context)
    const bytes = Buffer.from(`${JSON.stringify(entries, null, 1)}\n`)
    const replaced = seen ? keepBytes(context, seen.bytes) : null
    const after = hash('sha256', bytes)
    await replaceSeenFile({ guarded, place, seen, bytes, after, context })
    return { path: place.shown, hash: after, before: seen?.hash ?? null, replaced }
  })
}

async function readPrompts(
  { guarded, promptsMax }: ParallelSetup,
  source: PromptSource,
  context: ToolContext,
): Promise<readonly string[]> {
  if (source.type === 'inline') return source.prompts
  const { bytes } = await readFileAt(guarded, await locateForCall(guarded, source.path, 'read', context))
  const prompts = parsePrompts(bytes.toString())
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

/** Reads one JSON list, or one JSON string per line. Null for any other text, and for an empty prompt. */
function parsePrompts(source: string): readonly string[] | null {
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

/** The name of the schema in error messages. */
const SHAPE = 'The output schema of parallel_llm'

function instructionsOf(system: string, shape: StandardSchema | null): string {
  if (shape === null) return system
  const schema = toJsonSchema(shape, SHAPE)
  const fit = schema ? ` that fits this JSON Schema:\n${JSON.stringify(schema)}` : '.'
  return `${system}\n\nAnswer with one JSON value and nothing else${fit}`.trim()
}

function inputSchema(promptsMax: number) {
  const prompt = textField('One prompt, complete in itself.', { min: 1 })
  const inline = objectField({
    type: constantField('inline'),
    prompts: listField('The prompts.', prompt, { min: 1, max: promptsMax }),
  })
  const file = objectField({
    type: constantField('file'),
    path: textField('A file that holds a JSON list of strings, or one JSON string a line.', { min: 1 }),
  })
  return objectField({
    source: alternativesField<PromptSource>('Where the prompts are.', [inline, file]),
    system: optionalField(textField('Instructions that every prompt is asked with.')),
    output_file: optionalField(
      textField('Write the entries to this file, as JSON, instead of returning them.', { min: 1 }),
    ),
    max_concurrency: optionalField(integerField(`How many at a time. Default ${CONCURRENCY}.`, { min: 1, max: 32 })),
  })
}

function constantField<const T extends string>(value: T): Field<T> {
  return {
    schema: { const: value },
    required: true,
    check: (given) => (given === value ? { value } : { issues: [{ path: [], message: `must be "${value}"` }] }),
  }
}

/** Reports the issues of the alternative that the value's `type` names. */
function alternativesField<T extends { readonly type: string }>(
  description: string,
  options: readonly Field<T>[],
): Field<T> {
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
