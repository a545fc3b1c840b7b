// Admission: what a reply asks for becomes proposals, once, when the reply arrives. The verdict is recorded with the reply,
// so history, wire and execution agree: parse, the tool's own normaliser, repair (only if something is wrong), validate, gate.
// Nothing runs here, and no call that is wrong ends a run.
import { hash } from 'node:crypto'
import type { Failure, Gate, Json, Mutable, Outside, Proposal, Terms } from '../../kernel/content.ts'
import { outsideOf as outsideIn } from '../../kernel/ledger.ts'
import type { ReplyCall } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'
import { canonicalJson, sorted } from './canonical.ts'
import { CHECK_LATE, checkedInTime } from './check-time.ts'
import { likenessOf } from '../policy/likeness.ts'
import { followLinks } from '../policy/links.ts'
import { placesIn } from '../policy/paths.ts'
import { isSuspect, normalised, parse, readingOf, type Reading } from '../repair/reading.ts'
import { isTooMuch, VALUES_MAX } from '../repair/repair.ts'
import { plainCopy, TOO_DEEP } from './plain.ts'
import { type CommandReadings, judge, type Policy, readCommands } from '../policy/policy.ts'
import type { Approval, Tool } from './tool.ts'
import { isObject, type JsonObject } from '../../view/json.ts'
import { clipped } from '../../view/text.ts'
import { objectShape, type Shape, shapesOf } from '../repair/shape.ts'

/** Longer arguments of a refused call are not kept. */
const REFUSED_CHARS_MAX = 2048
const NESTING_MAX = 256
const ARGS_CHARS_MAX = 16_000_000

type Tools = ReadonlyMap<string, Tool>
/** How calls are judged: `approvalMs` is how long a question to a person stays open, null for ever. */
export type Asking = {
  readonly now: number
  /** For checks that may never answer. */
  readonly clock: Clock
  readonly approvalMs: number | null
  readonly policy: Policy
  readonly environment: string | null
  readonly redactor: SecretFinder
  /** The model reads its calls as text: what is not repaired is shown to it again exactly as it wrote it. */
  readonly verbatim?: boolean
  /** What people denied in this run, by what it does (likeness.ts): it is asked again, whatever rules allow. */
  readonly denied?: readonly string[]
  /** What becomes of a call of a tool that is not there. Default: the model reads which there are. */
  readonly unknownTool?: UnknownTool | undefined
  /** Tools that the model is still shown, and that are not there any more. */
  readonly gone?: ReadonlySet<string>
  /** What becomes of failures of tools that do not say so themselves. Default `return`. */
  readonly toolErrors?: 'return' | 'fail' | undefined
}

/** `rewrite`: another tool is called in its place, with the same arguments. */
export type UnknownTool = 'return' | 'fail' | { readonly rewrite: string }

/** The name of a known secret somewhere in a value, or null. */
interface SecretFinder {
  readonly idle: boolean
  find(value: Json): string | null
  /** The value with marks in the place of secrets. */
  json(value: Json): Json
}

/** A promise only if some schema checks asynchronously: most do not, and this stands in every turn. */
export function admit(
  calls: readonly ReplyCall[],
  tools: Tools,
  asking: Asking,
): readonly Proposal[] | Promise<readonly Proposal[]> {
  const admitted: (Proposal | Promise<Proposal>)[] = []
  let waits = false
  for (let i = 0; i < calls.length; i++) {
    const proposal = admitOne(calls[i] as ReplyCall, tools, asking)
    waits ||= proposal instanceof Promise
    admitted.push(proposal)
  }
  if (!waits) return finished(admitted as Proposal[])
  return Promise.all(admitted.map((proposal) => Promise.resolve(proposal))).then(finished)
}

/** How many calls of one reply may wait for people or others, and how many of these are children. */
const WAITING_MAX = 100
const CHILDREN_MAX = 50

/** All that waits in a session is of one reply, so that this bounds the open questions and the open children of a session. */
function finished(proposals: readonly Proposal[]): readonly Proposal[] {
  return ordered(proposals.length > CHILDREN_MAX ? withoutExcess(proposals) : proposals)
}

function withoutExcess(proposals: readonly Proposal[]): readonly Proposal[] {
  let [waiting, children] = [0, 0]
  return proposals.map((proposal) => {
    const { gate } = proposal
    if (gate?.type !== 'ask' && gate?.type !== 'outside') return proposal
    const isChild = outsideIn(proposal)?.child !== undefined
    const full = isChild && children === CHILDREN_MAX
    if (!full && waiting < WAITING_MAX) {
      waiting += 1
      if (isChild) children += 1
      return proposal
    }
    const most = full ? `${CHILDREN_MAX} subagents` : `${WAITING_MAX} calls that wait for somebody`
    const message = `Not run: one reply may hold at most ${most}. Make the rest of the calls after these.`
    const { digest: _digest, ...rest } = proposal
    return { ...rest, gate: { type: 'refuse', failure: { kind: 'Denied', message } } }
  })
}

/** One sequential call puts the whole batch in order: each call sees what the calls before it did. */
function ordered(proposals: readonly Proposal[]): readonly Proposal[] {
  if (!proposals.some(({ sequential }) => sequential)) return proposals
  return proposals.map((proposal) => ({ ...proposal, sequential: true }))
}

function admitOne(call: ReplyCall, tools: Tools, asking: Asking): Proposal | Promise<Proposal> {
  const tool = tools.get(call.tool)
  if (!tool) return unknown(call, tools, asking)
  try {
    const proposal = admitTo(tool, call, asking)
    if (!(proposal instanceof Promise)) return proposal
    const checked = proposal.catch((error: unknown) => unchecked(call, tool, error))
    return checkedInTime(asking.clock, checked, () => refuse(call, tool, { kind: 'Timeout', message: lateText(tool) }))
  } catch (error) {
    return unchecked(call, tool, error)
  }
}

function unknown(call: ReplyCall, tools: Tools, asking: Asking): Proposal | Promise<Proposal> {
  const { unknownTool = 'return', redactor } = asking
  if (typeof unknownTool === 'object' && tools.has(unknownTool.rewrite))
    return admitOne({ ...call, tool: unknownTool.rewrite }, tools, asking)
  const written = parse(call.args)
  const shown = isObject(written) ? (redactor.json(written) as JsonObject) : null
  const message = asking.gone?.has(call.tool) ? goneText(call.tool, tools) : unknownText(call.tool, tools, shown)
  const proposal = refuse(call, null, { kind: 'NotFound', message })
  return unknownTool === 'fail' ? { ...proposal, fails: true } : proposal
}

/** Arguments that are valid as they are pay for the parser and the schema, and for nothing else. */
function admitTo(tool: Tool, call: ReplyCall, asking: Asking): Proposal | Promise<Proposal> {
  if (call.args.length > ARGS_CHARS_MAX) return tooMuch(tool, call, `${call.args.length} characters`, ARGS_CHARS_MAX)
  const written = parse(call.args)
  if (isTooMuch(written, call.args)) return tooMuch(tool, call, `more than ${VALUES_MAX} values`, VALUES_MAX)
  if (!isObject(written) || isSuspect(tool, written)) return reread(tool, call, asking)
  const checked = tool.validate(normalised(tool, written))
  if (checked instanceof Promise) {
    return checked.then((c) => (c.issues ? reread(tool, call, asking) : accept(tool, call, c.value as Json, asking)))
  }
  return checked.issues ? reread(tool, call, asking) : accept(tool, call, checked.value as Json, asking)
}

function tooMuch(tool: Tool, call: ReplyCall, what: string, most: number): Proposal {
  const message = `Invalid arguments for "${tool.name}": they have ${what}, at most ${most}. Make several smaller calls.`
  return refuse(call, tool, { kind: 'InvalidInput', message, recoverable: true }, 'InvalidArguments')
}

/** The first reading the schema takes without a complaint is the call. If there is none, the text stays as it was and is refused. */
function reread(tool: Tool, call: ReplyCall, asking: Asking): Proposal | Promise<Proposal> {
  const reading = readingOf(tool, call.args)
  if (reading === 'too much') return tooMuch(tool, call, `more than ${VALUES_MAX} values`, VALUES_MAX)
  const settle = (checked: Checked): Proposal | Promise<Proposal> => {
    if (!checked.issues) return accept(tool, call, checked.value as Json, asking)
    // Whether it was an object at all is the parser's word; what is wrong with the object is the schema's.
    const retryKind = reading.closed === null && reading.written !== null ? 'ValidationError' : 'InvalidArguments'
    // Before anything is cut: half of a secret is not recognized.
    const written = reading.written && (asking.redactor.json(reading.written) as JsonObject)
    const message = invalidText(tool, { ...reading, written }, checked.issues)
    const refused = refuse(call, tool, { kind: 'InvalidInput', message, recoverable: true }, retryKind)
    return retryKind === 'ValidationError' ? withErrors(refused, checked.issues) : refused
  }
  if (reading.conflicts.length > 0) return settle({ issues: reading.conflicts })
  const checked = firstValid(tool, reading.tries)
  return checked instanceof Promise ? checked.then(settle) : settle(checked)
}

/** For programs: what is wrong, field by field. */
function withErrors(proposal: Proposal, issues: readonly Issue[]): Proposal {
  const { gate } = proposal
  if (gate?.type !== 'refuse') return proposal
  const errors = issues.slice(0, ISSUES_MAX).map((issue) => {
    return { path: clipped(pathOf(issue).join('.'), 80), message: clipped(issue.message, MESSAGE_MAX) }
  })
  return { ...proposal, gate: { ...gate, metadata: { ...(gate.metadata as JsonObject), errors } } }
}

type Checked = Awaited<ReturnType<Tool['validate']>>

/** What is valid, else the complaints about the last try. */
function firstValid(tool: Tool, tries: readonly Json[]): Checked | Promise<Checked> {
  const [first, ...rest] = tries
  if (first === undefined) return { issues: [] }
  const orNext = (checked: Checked): Checked | Promise<Checked> =>
    checked.issues && rest.length > 0 ? firstValid(tool, rest) : checked
  const checked = tool.validate(first)
  return checked instanceof Promise ? checked.then(orNext) : orNext(checked)
}

function accept(tool: Tool, call: ReplyCall, checked: Json, asking: Asking): Proposal | Promise<Proposal> {
  // What is judged, shown, recorded and executed is this one copy, whatever object the schema made.
  const odd: string[] = []
  const args = plainCopy(checked, NESTING_MAX, odd)
  const stranger = odd[0]
  // What is stored must also be written and read again, by parsers that recurse.
  if (stranger === TOO_DEEP) {
    const message = `Invalid arguments for "${tool.name}": nested deeper than ${NESTING_MAX} levels.`
    return refuse(call, tool, { kind: 'InvalidInput', message, recoverable: true }, 'InvalidArguments')
  }
  if (stranger !== undefined) return refuse(call, tool, { kind: 'Failed', message: strangerText(tool.name, stranger) })
  const secret = asking.redactor.idle ? null : asking.redactor.find(args)
  if (secret !== null) return refuse(call, tool, { kind: 'Denied', message: secretText(tool.name, secret) })
  const approval = tool.approval(args)
  const raw = asking.verbatim ? rawOf(call.args, args) : undefined
  const readings = readCommands(asking.policy, args)
  if (approval instanceof Promise || readings !== null)
    return Promise.all([approval, readings]).then(([said, read]) =>
      propose(call, tool, { args, raw }, gateOf(tool, args, { approval: said, readings: read }, asking), asking),
    )
  return propose(call, tool, { args, raw }, gateOf(tool, args, { approval, readings }, asking), asking)
}

/** The model's own spelling, where it is another than ours and means the same. */
function rawOf(text: string, args: Json): string | undefined {
  if (JSON.stringify(args) === text) return undefined
  const written = parse(text) ?? null
  return canonicalJson(written) === canonicalJson(args) ? text : undefined
}

/** What the tool asks for itself, and what its commands run, for the rules. */
type Looked = { readonly approval: Approval; readonly readings: CommandReadings | null }
type Written = { readonly args: Json; readonly raw: string | undefined }

/** The policy first, then the tool itself. A denial is a result the model can read, and is recorded like any other. */
function gateOf(tool: Tool, args: Json, { approval, readings }: Looked, asking: Asking): Gate | null {
  const { now, approvalMs, policy, environment, denied = NOTHING } = asking
  // Most harnesses have no rules, and this stands in every turn.
  const free = policy.rules.length === 0 && approval === 'auto' && !policy.writeRoots
  if (free && denied.length === 0) return outsideOf(tool, args)
  const action = {
    tool: tool.name,
    args,
    approval,
    effect: tool.effect,
    ...(environment === null ? {} : { environment }),
    ...(tool.root === undefined ? {} : { root: tool.root }),
  }
  const first = judge(policy, action, readings)
  const again = first.type === 'allow' && denied.length > 0 && denied.includes(likenessOf(tool.name, args, policy.base))
  const judged = again ? judge({ ...policy, rules: ASK_ALL }, action) : first
  if (judged.type === 'deny')
    return { type: 'refuse', status: 'denied', failure: { kind: 'Denied', message: judged.reason } }
  const outside = outsideOf(tool, args)
  if (judged.type === 'allow') return outside
  const openMs = judged.expiresMs ?? approvalMs
  const gate = { ...judged.gate, expiresAt: openMs === null ? null : now + openMs }
  return outside ? { ...gate, outside } : gate
}

const NOTHING: readonly string[] = []
const ASK_ALL: Policy['rules'] = [{ effect: 'ask' }]

/** What answers the call, if nothing runs here. */
function outsideOf(tool: Tool, args: Json): Outside | null {
  if (!tool.outside) return null
  if (tool.orders) return { type: 'outside', orders: [] }
  const handoff = tool.handoff ? ({ handoff: true } as const) : {}
  return tool.child ? { type: 'outside', child: tool.child(args), ...handoff } : { type: 'outside' }
}

function propose(
  call: ReplyCall,
  tool: Tool,
  { args, raw }: Written,
  gate: Gate | null,
  asking: Asking,
): Proposal | Promise<Proposal> {
  const { name, effect, timeoutMs } = tool
  const proposal: Mutable<Proposal> = { id: call.id, tool: name, args, effect, timeoutMs }
  if (gate) proposal.gate = gate
  if (raw !== undefined) proposal.raw = raw
  if (tool.blocks) proposal.blocks = true
  if (typeof tool.sequential === 'function' ? tool.sequential(args) : tool.sequential) proposal.sequential = true
  if (tool.reconcile) proposal.reconcile = true
  if (tool.retries !== null) proposal.retries = tool.retries
  if ((tool.onError ?? asking.toolErrors) === 'fail') proposal.fails = true
  return gate?.type === 'ask' ? bindApproval(proposal, tool, asking) : proposal
}

/** With all that an approval is bound to. A promise only for a tool that changes files. */
function bindApproval(proposal: Mutable<Proposal>, tool: Tool, asking: Asking): Proposal | Promise<Proposal> {
  const { args } = proposal
  const { environment, policy, redactor } = asking
  const place = placeOf(tool, environment)
  if (place !== undefined) proposal.place = place
  const links = linksOf(tool, args, asking)
  if (links !== undefined) proposal.links = links
  proposal.same = likenessOf(tool.name, args, policy.base)
  const digested = (files?: Terms['files']): Proposal => {
    if (files !== undefined && files.length > 0) proposal.files = redactor.json(files) as typeof files
    proposal.digest = digestOf(tool, proposal)
    return proposal
  }
  return tool.filesChanged ? tool.filesChanged(args).then(digested) : digested()
}

/** What a person is shown of a call. */
type Shown = { readonly [Key in 'args' | 'place' | 'links' | 'files']?: Proposal[Key] | undefined } & Pick<
  Proposal,
  'args'
>

/**
 * What a person approves: this tool as defined now, with exactly these arguments, in this place, where links lead now, over these
 * bytes.
 */
export function digestOf(
  { name, definition }: Pick<Tool, 'name' | 'definition'>,
  { args, place, links, files }: Shown,
): string {
  const shown: Json[] = [name, definition, sorted(args)]
  if (place !== undefined) shown.push(place)
  if (links !== undefined || files !== undefined) shown.push({ links: links ?? [], files: sorted(files ?? []) })
  return hash('sha256', JSON.stringify(shown))
}

/** Where the paths of a call lead through links; undefined if all of them are what they say. */
export function linksOf(
  { root }: Pick<Tool, 'root'>,
  args: Json,
  { policy, redactor }: Pick<Asking, 'policy' | 'redactor'>,
): readonly string[] | undefined {
  const links = followLinks(placesIn(args), root ?? policy.base ?? process.cwd())
  return links.length === 0 ? undefined : (redactor.json(links) as readonly string[])
}

/** Where it would act, and with what beside its arguments. Undefined if nothing but the arguments decides that. */
export function placeOf({ place }: Pick<Tool, 'place'>, environment: string | null): string | undefined {
  if (place === undefined && environment === null) return undefined
  return hash('sha256', JSON.stringify([environment, sorted(place?.() ?? null)]))
}

/** The original arguments stay for the history, if they can and are short: a megabyte of arguments that did not run helps no reader. */
function refuse(call: ReplyCall, tool: Tool | null, failure: Failure, retryKind?: string): Proposal {
  const written = call.args.length > REFUSED_CHARS_MAX ? {} : parse(call.args)
  const args = isObject(written) ? written : {}
  const gate: Gate =
    retryKind === undefined
      ? { type: 'refuse', ...(failure.kind === 'Denied' ? { status: 'denied' } : {}), failure }
      : { type: 'refuse', failure, retryKind, metadata: { retry: true, error_type: retryKind } }
  const proposal: Mutable<Proposal> = { id: call.id, tool: call.tool, args, gate, effect: 'read', timeoutMs: 0 }
  // The budget is the tool's, also for calls that never ran.
  if (tool && tool.retries !== null) proposal.retries = tool.retries
  return proposal
}

/** The tool's own code threw while its arguments were read: as if its handler had, so no retry is counted. */
function unchecked(call: ReplyCall, tool: Tool, error: unknown): Proposal {
  const text = error instanceof Error ? `${error.name}: ${error.message || 'no message'}` : 'something that is no Error'
  const message = `The arguments of "${tool.name}" could not be checked: ${clipped(text, 500)}`
  return refuse(call, tool, { kind: 'Failed', message })
}

function lateText({ name }: Tool): string {
  return `The arguments of "${name}" could not be checked, so it was not run: ${CHECK_LATE}.`
}

function secretText(name: string, secret: string): string {
  return `The arguments of "${name}" hold the secret ${secret}, so the call was not made. Use a tool that is given the secret.`
}

function strangerText(name: string, stranger: string): string {
  return `The schema of "${name}" made ${stranger} of the arguments, which cannot be recorded, so it was not run. Its handler must make that of plain JSON.`
}

/** What was received comes first: a long list of tools may be cut. */
function goneText(name: string, tools: Tools): string {
  return bounded(`The tool "${name}" is no longer there, and did not run; ${knownText(tools)}`)
}

function knownText(tools: Tools): string {
  return tools.size > 0 ? `choose one of: ${[...tools.keys()].join(', ')}` : 'there are no tools here'
}

function unknownText(name: string, tools: Tools, written: JsonObject | null): string {
  const known = knownText(tools)
  return bounded([`unknown tool "${clipped(name, 64)}"`, ...received(written), known].join('; '))
}

// What the model is told about arguments that were refused: the tool, each problem, what was received and what is expected.
// Names, types, lengths and short previews only: content is never repeated.

type Issue = { readonly message: string; readonly path?: readonly unknown[] | undefined }

const TEXT_BYTES_MAX = 2048
const PREVIEW_MAX = 40
const MESSAGE_MAX = 160
const ISSUES_MAX = 8
const FIELDS_MAX = 12

function invalidText(tool: Tool, reading: Reading, issues: readonly Issue[]): string {
  const { written } = reading
  const head = `Invalid arguments for "${tool.name}":`
  const problem = problemOf(reading)
  const bullets = issues.slice(0, ISSUES_MAX).map((issue) => bullet(issue, written))
  if (issues.length > ISSUES_MAX) bullets.push(`- and ${issues.length - ISSUES_MAX} more problems`)
  const first = problem === '' ? head : `${head} ${problem}`
  return bounded([first, ...bullets, ...received(written), ...expected(tool)].join('\n'))
}

/** At most 2 KB, and no half character at the end. */
function bounded(text: string): string {
  if (text.length * 3 <= TEXT_BYTES_MAX || Buffer.byteLength(text) <= TEXT_BYTES_MAX) return text
  const cut = Buffer.from(text).subarray(0, TEXT_BYTES_MAX - 3)
  return `${cut.toString().replace(/\uFFFD+$/, '')}…`
}

function problemOf({ closed, written }: Reading): string {
  if (closed === null) return written === null ? 'not a JSON object.' : ''
  if (closed === 'unreadable') return 'not valid JSON. Nothing was run; send one JSON object.'
  const where = { none: 'is not closed', tail: 'does not end as it should', value: 'ends inside a value' }[closed.lost]
  return `not valid JSON: the text ${where}, so a part may be missing. Nothing was run; send the whole object again.`
}

function pathOf({ path = [] }: Issue): readonly string[] {
  return path.map((step) => String(step !== null && typeof step === 'object' && 'key' in step ? step.key : step))
}

function bullet(issue: Issue, written: JsonObject | null): string {
  const path = pathOf(issue)
  const at = path.length > 0 ? clipped(path.join('.'), 80) : '<root>'
  const got = path.length > 0 ? valueAt(written, path) : undefined
  return `- ${at}: ${clipped(issue.message, MESSAGE_MAX)}${got === undefined ? '' : ` (got ${preview(got)})`}`
}

function valueAt(value: Json, path: readonly string[]): Json | undefined {
  let found: Json | undefined = value
  for (const step of path) {
    if (found === null || typeof found !== 'object' || !Object.hasOwn(found, step)) return undefined
    found = (found as JsonObject)[step]
  }
  return found
}

function received(written: JsonObject | null): readonly string[] {
  if (written === null) return []
  const names = Object.keys(written)
  if (names.length === 0) return ['Received: no fields']
  const fields = names
    .slice(0, FIELDS_MAX)
    .map((name) => `${clipped(name, PREVIEW_MAX)} ${summary(written[name] ?? null)}`)
  const more = names.length > FIELDS_MAX ? `, and ${names.length - FIELDS_MAX} more` : ''
  return [`Received: ${fields.join(', ')}${more}`]
}

function summary(value: Json): string {
  if (typeof value === 'string') return `(string, ${value.length} characters: ${preview(value)})`
  return value === null || typeof value === 'object' ? `(${preview(value)})` : `(${typeof value}: ${preview(value)})`
}

/** Never more than the first characters of a text, and nothing of what is inside of a list or an object. */
function preview(value: Json): string {
  if (Array.isArray(value)) return `array, ${value.length} items`
  if (isObject(value)) return `object, ${Object.keys(value).length} fields`
  return clipped(JSON.stringify(typeof value === 'string' ? value.slice(0, PREVIEW_MAX) : value), PREVIEW_MAX)
}

function expected(tool: Tool): readonly string[] {
  const shape = objectShape(shapesOf(tool.parameters, tool.parameters) ?? [], {})
  if (!shape?.fields) return []
  const names = [...shape.fields].slice(0, FIELDS_MAX).map(([name, schema]) => {
    const shapes: readonly Shape[] = shapesOf(schema, tool.parameters) ?? []
    const types = new Set(shapes.flatMap(({ types: own }) => [...own]))
    return `${clipped(name, PREVIEW_MAX)}${shape.required.has(name) ? '' : '?'}: ${[...types].join('|') || 'any'}`
  })
  const more = shape.fields.size > FIELDS_MAX ? ', …' : ''
  return [`Expected: {${names.join(', ')}${more}}`]
}
