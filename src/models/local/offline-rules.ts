// The rules of the offline model (offline.ts). Loaded by its first call.
import type { Json, Part } from '../../kernel/content.ts'
import type { CallContext, Reply, ReplyCall, Request, ToolSchema } from '../../ports/model.ts'
import { smallestValue } from './offline-value.ts'
import { FINAL_RESULT, PROMPTED } from '../structured-output.ts'
import { mendMessages, type SendableTurn } from '../protocols/mend-messages.ts'
import { readTolerantJson } from '../../view/tolerant-json.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { shortenText } from '../../view/shown-text.ts'

/** The beginning of every answer. */
const SAYS = 'This is not a language model but the offline stand-in for one, which follows fixed rules.'
const SHOWN_CHARS_MAX = 2_000

/** The same request always gets the same answer. */
export async function answerOffline(request: Request, context: CallContext): Promise<Reply> {
  return emitAnswer(applyRules(request), request, context)
}

type PlannedCall = { readonly tool: string; readonly args: Json }
type OfflineAnswer = { readonly text: string; readonly call?: PlannedCall }

/** The parts of a request that the rules use. */
type RuleInput = {
  readonly request: Request
  /** The last user message. */
  readonly text: string
  /** The results of the calls made since. Null if there were none. */
  readonly results: Extract<SendableTurn, { type: 'assistant' }>['results'] | null
}

type Rule = (asked: RuleInput) => OfflineAnswer | null

/** The first rule that returns an answer counts. */
const RULES: readonly Rule[] = [useTool, giveValue, tellResults, tellInput]

function applyRules(request: Request): OfflineAnswer {
  const { turns } = mendMessages(request.messages)
  const last = turns.at(-1)
  const said = turns.filter((turn) => turn.type === 'user').map((turn) => paragraphsOf(turn.parts))
  const text = said.findLast((each) => !each.startsWith('<harness_notice')) ?? ''
  const asked: RuleInput = { request, text, results: last?.type === 'assistant' ? last.results : null }
  for (const rule of RULES) {
    const answer = rule(asked)
    if (answer) return answer
  }
  return { text: SAYS }
}

/** Makes one call per message. The next answer reports its result and makes no further call. */
function useTool({ request, text, results }: RuleInput): OfflineAnswer | null {
  if (results !== null || request.allow === 'none') return null
  const call = findNamedCall(text, request.tools) ?? findMeantCall(text, request.tools)
  return call && { text: `${SAYS} It uses ${call.tool}, as it was told.`, call }
}

/** `use TOOL`, `use TOOL with {…}`, or `TOOL {…}`. */
function findNamedCall(text: string, tools: readonly ToolSchema[]): PlannedCall | null {
  for (const { name, parameters } of tools) {
    const word = `[\`"']?${name.replace(/[^\w-]/g, '\\$&')}(?![\\w-])[\`"']?`
    const found = new RegExp(`(?:\\b(use|call|run) (?:the )?(?:tool )?|^\\s*)${word}(?: with)?:?\\s*(\\{)?`, 'i').exec(
      text,
    )
    if (!found || (found[1] === undefined && found[2] === undefined)) continue
    if (found[2] === undefined) return { tool: name, args: smallestValue(parameters) }
    const args = readTolerantJson(text.slice(found.index + found[0].length - 1))
    if (isObject(args)) return { tool: name, args }
  }
  return null
}

type Phrase = { readonly says: RegExp; readonly tools: readonly string[] }

/** Phrases and the tools that they mean. The names of their arguments are in FIELDS. */
const VERBS: readonly Phrase[] = [
  {
    says: /\b(?:read|open|show) (?:the )?(?:file )?[`"']?(?<path>[\w~@-]*[./][\w~@./-]*\w)/i,
    tools: ['read', 'read_file'],
  },
  {
    says: /\blist (?:the |all )?(?:files|folder|directory)(?: (?:in|of|under))? ?[`"']?(?<path>[\w~@./-]*)/i,
    tools: ['list', 'ls'],
  },
  { says: /\blist [`"']?(?<path>[\w~@-]*[./][\w~@./-]*)/i, tools: ['list', 'ls'] },
  {
    says: /\b(?:search|grep|look) for (?:[`"'](?<query>[^`"']+)[`"']|(?<word>\S+))(?: in [`"']?(?<path>[\w~@./-]*[\w/]))?/i,
    tools: ['search', 'grep', 'web_search'],
  },
]

const FIELDS: Readonly<Record<string, readonly string[]>> = {
  path: ['path', 'file', 'file_path', 'directory'],
  query: ['pattern', 'query', 'q', 'text'],
  word: ['pattern', 'query', 'q', 'text'],
}

function findMeantCall(text: string, tools: readonly ToolSchema[]): PlannedCall | null {
  for (const verb of VERBS) {
    const found = verb.says.exec(text)
    const tool = found && tools.find(({ name }) => verb.tools.includes(name))
    if (tool) return { tool: tool.name, args: fillArguments(tool.parameters, found.groups ?? {}) }
  }
  return null
}

function fillArguments(parameters: Json, groups: Readonly<Record<string, string | undefined>>): Json {
  const properties = isObject(parameters) ? (parameters['properties'] ?? {}) : {}
  const known = isObject(properties) ? Object.keys(properties) : []
  const given = Object.entries(groups).flatMap(([group, value]) => {
    const field = FIELDS[group]?.find((name) => known.includes(name))
    return field === undefined || value === undefined || value === '' ? [] : [[field, value] as const]
  })
  const least = smallestValue(parameters)
  return { ...(isObject(least) ? least : {}), ...Object.fromEntries(given) }
}

const MADE_UP = 'What follows is the smallest value that fits the schema, and no answer.'

function giveValue({ request: { output, instructions } }: RuleInput): OfflineAnswer | null {
  if (output?.mode === 'tool') {
    return { text: `${SAYS} ${MADE_UP}`, call: { tool: output.name, args: smallestValue(output.schema) } }
  }
  const at = instructions.lastIndexOf(PROMPTED)
  const schema = output
    ? output.schema
    : at < 0
      ? undefined
      : readTolerantJson(instructions.slice(at + PROMPTED.length))
  if (schema === undefined) return null
  return { text: `${SAYS} ${MADE_UP}\n\`\`\`json\n${JSON.stringify(smallestValue(schema))}\n\`\`\`` }
}

function tellResults({ results }: RuleInput): OfflineAnswer | null {
  if (results === null || results.length === 0) return null
  const told = results.map(({ tool, ok, content }) => {
    return `${tool} ${ok ? 'gave' : 'failed'}:\n\`\`\`\n${shortenText(content, SHOWN_CHARS_MAX)}\n\`\`\``
  })
  return { text: `${SAYS} It did what it was told.\n${told.join('\n')}\nThat is all it can say about it.` }
}

function tellInput({ text, request }: RuleInput): OfflineAnswer {
  const words = text.split(/\s+/).filter((word) => word !== '').length
  const [sentence = ''] = /^[^]*?[.!?](?=\s|$)/.exec(text.trim()) ?? [text.trim()]
  const names = request.tools.map(({ name }) => name).filter((name) => name !== FINAL_RESULT)
  const how = names.length > 0 ? `\nTools: ${names.join(', ')}. Say "use TOOL with {…}" to have one called.` : ''
  return { text: `${SAYS}\nWords: ${words}. First sentence: "${shortenText(sentence, SHOWN_CHARS_MAX)}"${how}` }
}

function emitAnswer({ text, call }: OfflineAnswer, { seq }: Request, context: CallContext): Reply {
  context.emit({ kind: 'text', part: 0, text })
  const calls: ReplyCall[] = []
  if (call) {
    const args = JSON.stringify(call.args)
    context.emit({ kind: 'arguments', part: 1, text: args })
    calls.push({ id: `offline_${seq}`, tool: call.tool, args })
  }
  const finish = calls.length > 0 ? 'calls' : 'stop'
  return { type: 'reply', parts: [{ type: 'text', text }], calls, finish, usage: null, cost: 0, route: 'offline' }
}

function paragraphsOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n')
}
