// Admission: what a reply asks for becomes proposals, once, when the reply arrives. The verdict is recorded with the reply,
// so history, wire and execution agree. Nothing runs here.
import { hash } from 'node:crypto'
import type { Gate, Json, Mutable, Proposal } from '../kernel/content.ts'
import type { Failure } from '../kernel/failure.ts'
import type { ReplyCall } from '../kernel/ports.ts'
import type { Tool } from './tool.ts'

type Tools = ReadonlyMap<string, Tool>
/** `now`, and how long a question to a person stays open; null for ever. */
type Asking = { readonly now: number; readonly approvalMs: number | null }

/** A promise only if some schema checks asynchronously: most do not, and this stands in every turn. */
export function admit(
  calls: readonly ReplyCall[],
  tools: Tools,
  now: number,
  approvalMs: number | null,
): readonly Proposal[] | Promise<readonly Proposal[]> {
  const admitted: (Proposal | Promise<Proposal>)[] = []
  let waits = false
  for (const call of calls) {
    const proposal = admitOne(call, tools, { now, approvalMs })
    waits ||= proposal instanceof Promise
    admitted.push(proposal)
  }
  return waits ? Promise.all(admitted.map((proposal) => Promise.resolve(proposal))) : (admitted as Proposal[])
}

function admitOne(call: ReplyCall, tools: Tools, asking: Asking): Proposal | Promise<Proposal> {
  const tool = tools.get(call.tool)
  if (!tool) return refuse(call, null, `unknown tool "${call.tool}"; choose one of: ${[...tools.keys()].join(', ')}`)
  const args = parse(call.args)
  if (args === undefined) return refuse(call, tool, `Invalid arguments for "${tool.name}": not a JSON object.`)
  const checked = tool.validate(args)
  return checked instanceof Promise
    ? checked.then((c) => judge(call, tool, c, asking))
    : judge(call, tool, checked, asking)
}

function judge(call: ReplyCall, tool: Tool, checked: Awaited<ReturnType<Tool['validate']>>, asking: Asking): Proposal {
  if (checked.issues) return refuse(call, tool, issuesText(tool.name, checked.issues))
  return propose(call, tool, checked.value as Json, gateOf(tool, asking))
}

function gateOf(tool: Tool, { now, approvalMs }: Asking): Gate | null {
  if (tool.approval === 'ask') {
    const expiresAt = approvalMs === null ? null : now + approvalMs
    return { type: 'ask', class: tool.name, n: 1, roles: [], expiresAt }
  }
  return tool.outside ? { type: 'outside' } : null
}

function propose(call: ReplyCall, tool: Tool, args: Json, gate: Gate | null): Proposal {
  const { name, effect, timeoutMs } = tool
  const proposal: Mutable<Proposal> = { id: call.id, tool: name, args, effect, timeoutMs }
  if (gate) proposal.gate = gate
  if (tool.sequential) proposal.sequential = true
  if (tool.reconcile) proposal.reconcile = true
  if (tool.retries !== null) proposal.retries = tool.retries
  if (gate?.type === 'ask') proposal.digest = digestOf(tool, args)
  return proposal
}

/** What a person approves: this tool as defined now, with exactly these arguments. */
function digestOf(tool: Tool, args: Json): string {
  return hash('sha256', JSON.stringify([tool.name, tool.definition, canonical(args)]))
}

function canonical(value: Json): Json {
  if (Array.isArray(value)) return value.map(canonical)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value as Readonly<Record<string, Json>>)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, canonical(item)]))
}

function refuse(call: ReplyCall, tool: Tool | null, message: string): Proposal {
  const failure: Failure = { kind: tool ? 'InvalidInput' : 'NotFound', message, recoverable: true }
  const args = parse(call.args) ?? {}
  return { id: call.id, tool: call.tool, args, gate: { type: 'refuse', failure }, effect: 'read', timeoutMs: 0 }
}

function parse(text: string): { readonly [key: string]: Json } | undefined {
  if (text.trim() === '') return {}
  try {
    const value = JSON.parse(text) as Json
    const object = value !== null && typeof value === 'object' && !Array.isArray(value)
    return object ? (value as { readonly [key: string]: Json }) : undefined
  } catch {
    return undefined
  }
}

type Issue = { readonly message: string; readonly path?: readonly unknown[] | undefined }

function issuesText(name: string, issues: readonly Issue[]): string {
  const lines = issues.map((issue) => `- ${pathText(issue.path)}: ${issue.message}`)
  return `Invalid arguments for "${name}":\n${lines.join('\n')}`
}

function pathText(path: Issue['path']): string {
  const keys = (path ?? []).map((step) =>
    String(step !== null && typeof step === 'object' && 'key' in step ? step.key : step),
  )
  return keys.length > 0 ? keys.join('.') : '<root>'
}
