// Models of OpenAI sometimes wrap several calls into one of a tool that was not offered, `multi_tool_use.parallel`. It is unwrapped
// here, before anything else reads the reply. Pure.
import type { Part } from '../../kernel/content.ts'
import type { Reply, ReplyCall, ToolSchema } from '../../ports/model.ts'
import { isObject, listOf } from '../../view/json.ts'
import { parsed } from '../../view/json.ts'

const WRAPPER = /^(multi_tool_use[._])?parallel$/
/** More than any reply has calls. */
const CALLS_MAX = 256

/** The same reply if nothing in it is wrapped. */
export function unwrapped<R extends Reply>(reply: R, tools: readonly ToolSchema[]): R {
  if (!reply.calls.some(({ tool }) => WRAPPER.test(tool))) return reply
  const calls: ReplyCall[] = []
  /** Where each call of the reply now begins. */
  const places: number[] = []
  for (const call of reply.calls) {
    places.push(calls.length)
    const offered = tools.some(({ name }) => name === call.tool)
    calls.push(...((offered ? null : callsIn(call)) ?? [call]))
  }
  if (calls.length > CALLS_MAX) return reply
  places.push(calls.length)
  return { ...reply, parts: reply.parts.map((part) => moved(part, places)), calls }
}

/** Null for what is not such a wrapper, or not whole. */
function callsIn({ id, tool, args }: ReplyCall): readonly ReplyCall[] | null {
  if (!WRAPPER.test(tool)) return null
  const wrapped = parsed(args)
  const uses = listOf(isObject(wrapped) ? wrapped['tool_uses'] : null)
  const calls = uses.flatMap((use, i): readonly ReplyCall[] => {
    if (!isObject(use) || typeof use['recipient_name'] !== 'string') return []
    const { recipient_name: name, parameters = {} } = use
    const own = id === '' ? '' : `${id}_${i}`
    return [{ id: own, tool: name.replace(/^functions\./, ''), args: JSON.stringify(parameters) }]
  })
  return calls.length === 0 || calls.length < uses.length ? null : calls
}

/** What says how many calls came before it is told the new number. */
function moved(part: Part, places: readonly number[]): Part {
  if ((part.type !== 'reasoning' && part.type !== 'provider') || !isObject(part.opaque)) return part
  const { at } = part.opaque
  const now = typeof at === 'number' ? places[at] : undefined
  return now === undefined || now === at ? part : { ...part, opaque: { ...part.opaque, at: now } }
}
