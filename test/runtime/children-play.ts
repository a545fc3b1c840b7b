// What the sessions of a family say, for the tests of subagents and for the process they kill: one scripted model that plays them
// all, each by its task. It knows nothing of tests.
import { type Json, type Model, type Request, scripted, type Step } from '../../src/index.ts'

export type Line = Step | ((request: Request) => Step | Promise<Step>)
/** What each session says, in order: the top one as `root`, every other under its task. */
export type Roles = Readonly<Record<string, readonly Line[]>>

/** Which reply of a session comes next is read from its own conversation, so any process plays on where another stopped. */
export function play(roles: Roles, name = 'family'): Model {
  return scripted(async (request) => {
    const role = request.session.includes('~') ? taskOf(request) : 'root'
    const said = request.messages.filter((message) => message.role === 'assistant').length
    const line = roles[role]?.[said]
    if (line === undefined) return { error: 'bad_request', message: `"${role}" has no line ${said}.` }
    return typeof line === 'function' ? line(request) : line
  }, name)
}

/** The first that was said to it. A notice of the harness may stand before it. */
function taskOf(request: Request): string {
  return toldIn(request).find((text) => !text.startsWith('<')) ?? ''
}

function textsOf(message: Request['messages'][number] | undefined): readonly string[] {
  return message?.role === 'user' ? message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : []
}

/** What the user and the harness said in a request. */
export function toldIn({ messages }: Request): readonly string[] {
  return messages.flatMap(textsOf)
}

/** The results in a request, in order. */
export function resultsIn({ messages }: Request): readonly { readonly ok: boolean; readonly content: string }[] {
  return messages.flatMap((message) => {
    if (message.role !== 'tool') return []
    return [{ ok: message.ok, content: typeof message.content === 'string' ? message.content : 'not text' }]
  })
}

export type Call = { readonly task: string; readonly agent?: string; readonly session?: string }

/** A reply that calls subagents. */
export function ask(...calls: readonly (string | Call)[]) {
  return {
    calls: calls.map((call) => ({
      tool: 'subagent',
      args: (typeof call === 'string' ? { task: call } : call) as Json,
    })),
  }
}

/** A reply that calls one tool. */
export function use(tool: string, args: Json = {}) {
  return { calls: [{ tool, args }] }
}

/** Returns the step. The second argument is evaluated before that, for its side effect. */
export function say<T extends Step>(step: T, _noted: unknown): T {
  return step
}

/** The last reply of a session: the results that came back to it. */
export const report: Line = (request) => resultsIn(request).at(-1)?.content ?? 'nothing came back'
