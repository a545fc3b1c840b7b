// The tool `script`: a model writes a program, and its run is a child session. The tool only describes the request;
// script-planner.ts runs the program.
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { diff } from '../view/line-diff.ts'
import { flagField, integerField, objectField, optionalField, textField } from '../tools/core/argument-schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'
import { ToolFailure } from '../tools/core/tool-output.ts'
import { SCRIPT } from '../view/script-cell.ts'
import { isObject, type JsonObject } from '../view/untrusted-json.ts'
import { listScripts, readScript } from './saved-scripts.ts'
import { type CompleteScriptOptions, currentMode, grantLimits, type ScriptLimits } from './script-options.ts'

const CODE_CHARS_MAX = 64 * 1024
const TIMEOUT_SECS = 300
const TIMEOUT_SECS_MAX = 3_600

export function scriptTool(options: CompleteScriptOptions): Tool {
  const { mode, folders, limits } = options
  const saved = listScripts(folders).map(({ name }) => name)
  const names = saved.length === 0 ? '' : `\nSaved scripts: ${saved.join(', ')}.`
  const count = (of: string): ReturnType<typeof integerField> => integerField(of, { min: 1, max: 1_000_000 })
  const input = objectField({
    script: optionalField(textField('The program of this cell.', { min: 1, max: CODE_CHARS_MAX })),
    name: optionalField(textField('A saved script. With "script" beside it, that text runs instead of the saved one.')),
    diff: optionalField(textField('Leave it out: how the program differs from the saved script.')),
    session_id: optionalField(
      textField('The script session to go on with, as a result named it.', { min: 1, max: 64 }),
    ),
    timeout_secs: optionalField(
      integerField(`How long the cell may work. Default ${TIMEOUT_SECS}.`, { min: 1, max: TIMEOUT_SECS_MAX }),
    ),
    limits: optionalField(
      objectField({
        cells: optionalField(count('Cells of the session.')),
        model_calls: optionalField(count('Calls of models.')),
        tool_calls: optionalField(count('Calls of tools and agents.')),
        depth: optionalField(count('How deep its agents may be.')),
        concurrency: optionalField(count('How many calls run at once.')),
      }),
    ),
    close_session: optionalField(flagField('True: no cell comes after this one.')),
  })
  const tool = defineTool({
    name: SCRIPT,
    description: `${DESCRIPTION}\nIt may make ${limits.toolCalls} calls of tools and ${limits.modelCalls} of models, ${limits.concurrency} at once.${names}`,
    input,
    effect: 'once',
    approval: () => (currentMode({ mode }) === 'off' ? 'never' : mode === 'ask' ? 'ask' : 'auto'),
    normalise: (args) => resolveProgram(folders, args),
  })
  return { ...tool, child: () => SCRIPT, starts: SCRIPT, choice: (args) => choiceOf(options, args), kind: 'subagent' }
}

const DESCRIPTION = `Runs a JavaScript program that calls tools, agents and models in loops and in parallel. One call is one cell; variables of the top level live on in the next cell of the same session_id.
Functions: await tool_call(name, args), await agent_query(agent, task), await model_query(prompt, { system, model }), each with _batched(list), which gives { ok, value } or { ok, error } for each; emit(text); answer(value); show_vars(); run.now(); run.random(). "return" gives the value of the cell.
There is no clock, no randomness, no network, no files, no import: only the tools. Await every call: one that nothing waits for at the end is not made. A call that failed throws an error with "kind" and "message".`

/** A person is asked about exactly the program that runs, so its text stands in the arguments. */
function resolveProgram(folders: readonly string[], args: Json): Json {
  if (!isObject(args)) return args
  const { name, diff: _given, ...rest } = args
  if (typeof name !== 'string' || name === '') return { ...rest, script: rest['script'] ?? missingProgram(folders) }
  const saved = savedScript(folders, name)
  if (saved === null) throw new ToolFailure('NotFound', unknownScriptText(folders, name))
  const { script } = rest
  if (typeof script !== 'string' || script === saved.text) return { ...rest, name, script: saved.text }
  return { ...rest, name, diff: diff(`${name}.js`, saved.text, script), script } satisfies JsonObject
}

function savedScript(folders: readonly string[], name: string): ReturnType<typeof readScript> {
  try {
    return readScript(folders, name)
  } catch (error) {
    throw error instanceof Fault ? new ToolFailure('InvalidInput', error.message) : error
  }
}

function missingProgram(folders: readonly string[]): never {
  const names = listScripts(folders).map(({ name }) => name)
  const saved = names.length === 0 ? '' : `, or "name" with one of: ${names.join(', ')}`
  throw new ToolFailure('InvalidInput', `Give "script" with the text of a program${saved}.`)
}

function unknownScriptText(folders: readonly string[], name: string): string {
  const names = listScripts(folders).map((saved) => saved.name)
  const known = names.length === 0 ? 'There are none.' : `There are: ${names.join(', ')}.`
  return `There is no saved script ${JSON.stringify(name.slice(0, 64))}. ${known}`
}

/** The options of the cell's run. */
function choiceOf(options: CompleteScriptOptions, args: Json): { readonly limits: Readonly<Record<string, number>> } {
  const { timeout_secs: secs = TIMEOUT_SECS, limits: asked = {} } = args as {
    readonly timeout_secs?: number
    readonly limits?: Partial<Pick<ScriptLimits, 'depth' | 'concurrency'>>
  }
  const { depth, concurrency } = options.limits
  const wanted = { depth, concurrency, ...asked }
  const granted = grantLimits(currentMode(options), options.limits, {
    // Sessions are never deeper than the host says: a model can only lower it.
    depth: Math.min(depth, wanted.depth),
    concurrency: wanted.concurrency,
  })
  return { limits: { activeMs: secs * 1_000, parallel: granted.concurrency, depth: granted.depth } }
}
