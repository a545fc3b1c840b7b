// OpenAI's models sometimes wrap several calls into one call of a tool that was not offered, `multi_tool_use.parallel`.
// This file unwraps it before anything else reads the reply. Pure.
import type { Part } from '../../kernel/content.ts'
import type { Reply, ReplyCall, ToolSchema } from '../../ports/model.ts'
import { isObject, asList } from '../../view/untrusted-json.ts'
import { parseJson } from '../../view/untrusted-json.ts'

const WRAPPER = /^(multi_tool_use[._])?parallel$/
/** No reply has more calls than this. */
const CALLS_MAX = 256

/** Returns the same reply if no call in it is wrapped. */
export function unwrapParallel<R extends Reply>(reply: R, tools: readonly ToolSchema[]): R {
  if (!reply.calls.some(({ tool }) => WRAPPER.test(tool))) return reply
  const calls: ReplyCall[] = []
  /** The place at which each call of the reply now begins. */
  const places: number[] = []
  for (const call of reply.calls) {
    places.push(calls.length)
    const offered = tools.some(({ name }) => name === call.tool)
    calls.push(...((offered ? null : callsIn(call)) ?? [call]))
  }
  if (calls.length > CALLS_MAX) return reply
  places.push(calls.length)
  return { ...reply, parts: reply.parts.map((part) => renumberPart(part, places)), calls }
}

/** Null for a call that is not such a wrapper, or that is incomplete. */
function callsIn({ id, tool, args }: ReplyCall): readonly ReplyCall[] | null {
  if (!WRAPPER.test(tool)) return null
  const wrapped = parseJson(args)
  const uses = asList(isObject(wrapped) ? wrapped['tool_uses'] : null)
  const calls = uses.flatMap((use, i): readonly ReplyCall[] => {
    if (!isObject(use) || typeof use['recipient_name'] !== 'string') return []
    const { recipient_name: name, parameters = {} } = use
    const own = id === '' ? '' : `${id}_${i}`
    return [{ id: own, tool: name.replace(/^functions\./, ''), args: JSON.stringify(parameters) }]
  })
  return calls.length === 0 || calls.length < uses.length ? null : calls
}

/** Updates the number of calls before a part, if the part has one. */
function renumberPart(part: Part, places: readonly number[]): Part {
  if ((part.type !== 'reasoning' && part.type !== 'provider') || !isObject(part.opaque)) return part
  const { at } = part.opaque
  const now = typeof at === 'number' ? places[at] : undefined
  return now === undefined || now === at ? part : { ...part, opaque: { ...part.opaque, at: now } }
}
