// Admission turns the calls of a reply into proposals, once, when the reply arrives. The verdict is recorded with the
// reply, so history, wire and execution agree. The order: parse, the tool's own normaliser, repair (only if something
// is wrong), validate, gate. Nothing runs here, and no invalid call ends a run.
import { hash } from 'node:crypto'
import type { Failure, Gate, Json, Mutable, Outside, Proposal, CallTerms } from '../../kernel/content.ts'
import { outsideOf as outsideIn } from '../../kernel/ledger.ts'
import type { ReplyCall } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'
import { canonicalJson, sortKeys } from './canonical-json.ts'
import { CHECK_LATE, checkInTime } from './check-time.ts'
import { likenessOf } from '../policy/likeness.ts'
import { followLinks } from '../policy/links.ts'
import { placesIn } from '../policy/argument-paths.ts'
import { isSuspect, parseArguments, readArguments, type ArgumentReading } from '../repair/argument-reading.ts'
import { hasTooManyValues, VALUES_MAX } from '../repair/repair.ts'
import { plainCopy, TOO_DEEP } from './plain-values.ts'
import { type CommandReadings, judge, type Policy, readCommands } from '../policy/policy.ts'
import type { Approval, Tool } from './tool.ts'
import { isObject, type JsonObject } from '../../view/untrusted-json.ts'
import { clipText } from '../../view/shown-text.ts'
import { objectShape, type SchemaShape, shapesOf } from '../repair/schema-alternatives.ts'

/** Longer arguments of a refused call are not kept. */
const REFUSED_CHARS_MAX = 2048
const NESTING_MAX = 256
const ARGS_CHARS_MAX = 16_000_000

type Tools = ReadonlyMap<string, Tool>
/** Settings for judging calls. `approvalMs` is how long a question to a person stays open; null is without end. */
export type AdmissionContext = {
  readonly now: number
  /** The clock that bounds checks which may never answer. */
  readonly clock: Clock
  readonly approvalMs: number | null
  readonly policy: Policy
  readonly environment: string | null
  readonly redactor: SecretFinder
  /** The model reads its calls as text: unrepaired arguments are shown to it again exactly as it wrote them. */
  readonly verbatim?: boolean
  /**
   * Calls that people denied in this run, by likeness hash (likeness.ts). A similar call is asked about again, even if
   * a rule allows it.
   */
  readonly denied?: readonly string[]
  /** How to handle a call of an unknown tool. Default: the model reads which tools there are. */
  readonly unknownTool?: UnknownTool | undefined
  /** Tools that the model was still shown and that no longer exist. */
  readonly gone?: ReadonlySet<string>
  /** How to handle failures of tools that do not set `onError`. Default `return`. */
  readonly toolErrors?: 'return' | 'fail' | undefined
}

/** `rewrite` calls another tool instead, with the same arguments. */
export type UnknownTool = 'return' | 'fail' | { readonly rewrite: string }

/** Finds the name of a known secret in a value; null if there is none. */
interface SecretFinder {
  readonly idle: boolean
  find(value: Json): string | null
  /** Replaces secrets in the value with their marks. */
  json(value: Json): Json
}

/** Returns a promise only if some schema checks asynchronously: most do not, and this runs in every turn. */
export function admitCalls(
  calls: readonly ReplyCall[],
  tools: Tools,
  asking: AdmissionContext,
): readonly Proposal[] | Promise<readonly Proposal[]> {
  const admitted: (Proposal | Promise<Proposal>)[] = []
  let waits = false
  let plain = true
  for (let i = 0; i < calls.length; i++) {
    const proposal = admitCall(calls[i] as ReplyCall, tools, asking)
    if (proposal instanceof Promise) waits = true
    else if (proposal.sequential || proposal.gate) plain = false
    admitted.push(proposal)
  }
  // Most batches wait for nobody and are in no order.
  if (!waits) return plain ? (admitted as Proposal[]) : finishBatch(admitted as Proposal[])
  return Promise.all(admitted.map((proposal) => Promise.resolve(proposal))).then(finishBatch)
}

/** The limits per reply: calls that wait for people or others, and how many of these may be children. */
const WAITING_MAX = 100
const CHILDREN_MAX = 50

/** All waiting calls of a session come from one reply, so this also bounds its open questions and children. */
function finishBatch(proposals: readonly Proposal[]): readonly Proposal[] {
  return keepBatchOrder(proposals.length > CHILDREN_MAX ? refuseExcess(proposals) : proposals)
}

function refuseExcess(proposals: readonly Proposal[]): readonly Proposal[] {
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

/** One sequential call makes the whole batch sequential, so that each call sees the effects of the earlier ones. */
function keepBatchOrder(proposals: readonly Proposal[]): readonly Proposal[] {
  if (!proposals.some(({ sequential }) => sequential)) return proposals
  return proposals.map((proposal) => ({ ...proposal, sequential: true }))
}

function admitCall(call: ReplyCall, tools: Tools, asking: AdmissionContext): Proposal | Promise<Proposal> {
  const tool = tools.get(call.tool)
  if (!tool) return admitUnknownTool(call, tools, asking)
  try {
    const proposal = admitToTool(tool, call, asking)
    if (!(proposal instanceof Promise)) return proposal
    const checked = proposal.catch((error: unknown) => refuseUnchecked(call, tool, error))
    return checkInTime(asking.clock, checked, () =>
      refuseCall(call, tool, { kind: 'Timeout', message: lateText(tool) }),
    )
  } catch (error) {
    return refuseUnchecked(call, tool, error)
  }
}

function admitUnknownTool(call: ReplyCall, tools: Tools, asking: AdmissionContext): Proposal | Promise<Proposal> {
  const { unknownTool = 'return', redactor } = asking
  if (typeof unknownTool === 'object' && tools.has(unknownTool.rewrite))
    return admitCall({ ...call, tool: unknownTool.rewrite }, tools, asking)
  const written = parseArguments(call.args)
  const shown = isObject(written) ? (redactor.json(written) as JsonObject) : null
  const message = asking.gone?.has(call.tool) ? goneText(call.tool, tools) : unknownText(call.tool, tools, shown)
  const proposal = refuseCall(call, null, { kind: 'NotFound', message })
  return unknownTool === 'fail' ? { ...proposal, fails: true } : proposal
}

/** Arguments that are already valid cost only the parser and the schema. */
function admitToTool(tool: Tool, call: ReplyCall, asking: AdmissionContext): Proposal | Promise<Proposal> {
  if (call.args.length > ARGS_CHARS_MAX)
    return refuseTooMuch(tool, call, `${call.args.length} characters`, ARGS_CHARS_MAX)
  const written = parseArguments(call.args)
  if (call.args.length > VALUES_MAX && hasTooManyValues(written, call.args))
    return refuseTooMuch(tool, call, `more than ${VALUES_MAX} values`, VALUES_MAX)
  if (!isObject(written) || isSuspect(tool, written)) return admitRepaired(tool, call, asking)
  const checked = tool.validate(tool.normalise ? tool.normalise(written) : written)
  if (checked instanceof Promise) {
    return checked.then((c) =>
      c.issues ? admitRepaired(tool, call, asking) : admitValid(tool, call, c.value as Json, asking),
    )
  }
  return checked.issues ? admitRepaired(tool, call, asking) : admitValid(tool, call, checked.value as Json, asking)
}

function refuseTooMuch(tool: Tool, call: ReplyCall, what: string, most: number): Proposal {
  const message = `Invalid arguments for "${tool.name}": they have ${what}, at most ${most}. Make several smaller calls.`
  return refuseCall(call, tool, { kind: 'InvalidInput', message, recoverable: true }, 'InvalidArguments')
}

/**
 * The first reading that the schema accepts is the call. If there is none, the call is refused with its text unchanged.
 */
function admitRepaired(tool: Tool, call: ReplyCall, asking: AdmissionContext): Proposal | Promise<Proposal> {
  const reading = readArguments(tool, call.args)
  if (reading === 'too much') return refuseTooMuch(tool, call, `more than ${VALUES_MAX} values`, VALUES_MAX)
  const settle = (checked: CheckedArguments): Proposal | Promise<Proposal> => {
    if (!checked.issues) return admitValid(tool, call, checked.value as Json, asking)
    // The parser decides whether the text was an object at all; the schema reports what is wrong with the object.
    const retryKind = reading.closed === null && reading.written !== null ? 'ValidationError' : 'InvalidArguments'
    // Redact before cutting: half of a secret is not recognized.
    const written = reading.written && (asking.redactor.json(reading.written) as JsonObject)
    const message = invalidText(tool, { ...reading, written }, checked.issues)
    const refused = refuseCall(call, tool, { kind: 'InvalidInput', message, recoverable: true }, retryKind)
    return retryKind === 'ValidationError' ? addFieldErrors(refused, checked.issues) : refused
  }
  if (reading.conflicts.length > 0) return settle({ issues: reading.conflicts })
  const checked = firstValid(tool, reading.tries)
  return checked instanceof Promise ? checked.then(settle) : settle(checked)
}

/** Adds the issues field by field, for programs. */
function addFieldErrors(proposal: Proposal, issues: readonly Issue[]): Proposal {
  const { gate } = proposal
  if (gate?.type !== 'refuse') return proposal
  const errors = issues.slice(0, ISSUES_MAX).map((issue) => {
    return { path: clipText(issuePath(issue).join('.'), 80), message: clipText(issue.message, MESSAGE_MAX) }
  })
  return { ...proposal, gate: { ...gate, metadata: { ...(gate.metadata as JsonObject), errors } } }
}

type CheckedArguments = Awaited<ReturnType<Tool['validate']>>

/** Returns the first valid result, or else the issues of the last try. */
function firstValid(tool: Tool, tries: readonly Json[]): CheckedArguments | Promise<CheckedArguments> {
  const [first, ...rest] = tries
  if (first === undefined) return { issues: [] }
  const orNext = (checked: CheckedArguments): CheckedArguments | Promise<CheckedArguments> =>
    checked.issues && rest.length > 0 ? firstValid(tool, rest) : checked
  const checked = tool.validate(first)
  return checked instanceof Promise ? checked.then(orNext) : orNext(checked)
}

function admitValid(
  tool: Tool,
  call: ReplyCall,
  checked: Json,
  asking: AdmissionContext,
): Proposal | Promise<Proposal> {
  // This one copy is judged, shown, recorded and executed, whatever object the schema made.
  const odd: string[] = []
  const args = plainCopy(checked, NESTING_MAX, odd)
  const stranger = odd[0]
  // The arguments are stored and read again by recursive parsers, so their depth is bounded.
  if (stranger === TOO_DEEP) {
    const message = `Invalid arguments for "${tool.name}": nested deeper than ${NESTING_MAX} levels.`
    return refuseCall(call, tool, { kind: 'InvalidInput', message, recoverable: true }, 'InvalidArguments')
  }
  if (stranger !== undefined)
    return refuseCall(call, tool, { kind: 'Failed', message: strangerText(tool.name, stranger) })
  const secret = asking.redactor.idle ? null : asking.redactor.find(args)
  if (secret !== null) return refuseCall(call, tool, { kind: 'Denied', message: secretText(tool.name, secret) })
  const approval = tool.approval(args)
  const raw = asking.verbatim ? rawArguments(call.args, args) : undefined
  const { policy, denied = NOTHING } = asking
  // Most harnesses have no rules, and this runs in every turn.
  if (approval === 'auto' && policy.rules.length === 0 && !policy.writeRoots && denied.length === 0)
    return buildProposal(call, tool, { args, raw }, tool.outside ? outsideAnswer(tool, args) : null, asking)
  const readings = readCommands(policy, args)
  if (approval instanceof Promise || readings !== null)
    return Promise.all([approval, readings]).then(([said, read]) =>
      buildProposal(
        call,
        tool,
        { args, raw },
        decideGate(tool, args, { approval: said, readings: read }, asking),
        asking,
      ),
    )
  return buildProposal(call, tool, { args, raw }, decideGate(tool, args, { approval, readings }, asking), asking)
}

/** The model's own JSON text, if it differs from ours but has the same meaning. */
function rawArguments(text: string, args: Json): string | undefined {
  if (JSON.stringify(args) === text) return undefined
  const written = parseArguments(text) ?? null
  return canonicalJson(written) === canonicalJson(args) ? text : undefined
}

/** The tool's own approval, and the readings of its commands for the rules. */
type ApprovalFacts = { readonly approval: Approval; readonly readings: CommandReadings | null }
type WrittenArguments = { readonly args: Json; readonly raw: string | undefined }

/** Asks the policy first, then the tool. A denial is a result that the model reads, recorded like any other. */
function decideGate(
  tool: Tool,
  args: Json,
  { approval, readings }: ApprovalFacts,
  asking: AdmissionContext,
): Gate | null {
  const { now, approvalMs, policy, environment, denied = NOTHING } = asking
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
  const outside = outsideAnswer(tool, args)
  if (judged.type === 'allow') return outside
  const openMs = judged.expiresMs ?? approvalMs
  const gate = { ...judged.gate, expiresAt: openMs === null ? null : now + openMs }
  return outside ? { ...gate, outside } : gate
}

const NOTHING: readonly string[] = []
const ASK_ALL: Policy['rules'] = [{ effect: 'ask' }]

/** Says where the answer comes from if nothing runs here. */
function outsideAnswer(tool: Tool, args: Json): Outside | null {
  if (!tool.outside) return null
  if (tool.orders) return { type: 'outside', orders: [] }
  const handoff = tool.handoff ? ({ handoff: true } as const) : {}
  const options = tool.choice ? { options: tool.choice(args) } : {}
  return tool.child ? { type: 'outside', child: tool.child(args), ...handoff, ...options } : { type: 'outside' }
}

function buildProposal(
  call: ReplyCall,
  tool: Tool,
  { args, raw }: WrittenArguments,
  gate: Gate | null,
  asking: AdmissionContext,
): Proposal | Promise<Proposal> {
  const { name, effect, timeoutMs } = tool
  const proposal: Mutable<Proposal> = { id: call.id, tool: name, args, effect, timeoutMs }
  if (call.text !== undefined) proposal.text = call.text
  if (gate) proposal.gate = gate
  if (raw !== undefined) proposal.raw = raw
  if (tool.blocks) proposal.blocks = true
  if (typeof tool.sequential === 'function' ? tool.sequential(args) : tool.sequential) proposal.sequential = true
  if (tool.reconcile) proposal.reconcile = true
  if (tool.retries !== null) proposal.retries = tool.retries
  if ((tool.onError ?? asking.toolErrors) === 'fail') proposal.fails = true
  return gate?.type === 'ask' ? bindApproval(proposal, tool, asking) : proposal
}

/** Adds everything that an approval is bound to. Returns a promise only for a tool that changes files. */
function bindApproval(proposal: Mutable<Proposal>, tool: Tool, asking: AdmissionContext): Proposal | Promise<Proposal> {
  const { args } = proposal
  const { environment, policy, redactor } = asking
  const place = placeOfTool(tool, environment)
  if (place !== undefined) proposal.place = place
  const links = linksOf(tool, args, asking)
  if (links !== undefined) proposal.links = links
  proposal.same = likenessOf(tool.name, args, policy.base)
  const digested = (files?: CallTerms['files']): Proposal => {
    if (files !== undefined && files.length > 0) proposal.files = redactor.json(files) as typeof files
    proposal.digest = digestOf(tool, proposal)
    return proposal
  }
  return tool.filesChanged ? tool.filesChanged(args).then(digested) : digested()
}

/** The parts of a call that a person sees. */
type ApprovedCall = { readonly [Key in 'args' | 'place' | 'links' | 'files']?: Proposal[Key] | undefined } & Pick<
  Proposal,
  'args'
>

/**
 * The hash that a person approves: this tool as defined now, with exactly these arguments, in this place, with its
 * links as they lead now, over these bytes.
 */
export function digestOf(
  { name, definition }: Pick<Tool, 'name' | 'definition'>,
  { args, place, links, files }: ApprovedCall,
): string {
  const shown: Json[] = [name, definition, sortKeys(args)]
  if (place !== undefined) shown.push(place)
  if (links !== undefined || files !== undefined) shown.push({ links: links ?? [], files: sortKeys(files ?? []) })
  return hash('sha256', JSON.stringify(shown))
}

/** Where the paths of a call lead through links. Undefined if no path leads through one. */
export function linksOf(
  { root }: Pick<Tool, 'root'>,
  args: Json,
  { policy, redactor }: Pick<AdmissionContext, 'policy' | 'redactor'>,
): readonly string[] | undefined {
  const links = followLinks(placesIn(args), root ?? policy.base ?? process.cwd())
  return links.length === 0 ? undefined : (redactor.json(links) as readonly string[])
}

/** A hash of where the call acts and with what, beside its arguments. Undefined if only the arguments decide that. */
export function placeOfTool({ place }: Pick<Tool, 'place'>, environment: string | null): string | undefined {
  if (place === undefined && environment === null) return undefined
  return hash('sha256', JSON.stringify([environment, sortKeys(place?.() ?? null)]))
}

/**
 * Short, parsable arguments are kept for the history. Large ones are dropped: a megabyte of arguments that never ran
 * helps no reader.
 */
function refuseCall(call: ReplyCall, tool: Tool | null, failure: Failure, retryKind?: string): Proposal {
  const written = call.args.length > REFUSED_CHARS_MAX ? {} : parseArguments(call.args)
  const args = isObject(written) ? written : {}
  const gate: Gate =
    retryKind === undefined
      ? { type: 'refuse', ...(failure.kind === 'Denied' ? { status: 'denied' } : {}), failure }
      : { type: 'refuse', failure, retryKind, metadata: { retry: true, error_type: retryKind } }
  const proposal: Mutable<Proposal> = { id: call.id, tool: call.tool, args, gate, effect: 'read', timeoutMs: 0 }
  if (call.text !== undefined && call.text.length <= REFUSED_CHARS_MAX) proposal.text = call.text
  // The retry budget is the tool's, even for calls that never ran.
  if (tool && tool.retries !== null) proposal.retries = tool.retries
  return proposal
}

/**
 * The tool's own code threw while its arguments were checked. This counts like a throw of its handler, so no retry is
 * counted.
 */
function refuseUnchecked(call: ReplyCall, tool: Tool, error: unknown): Proposal {
  const text = error instanceof Error ? `${error.name}: ${error.message || 'no message'}` : 'something that is no Error'
  const message = `The arguments of "${tool.name}" could not be checked: ${clipText(text, 500)}`
  return refuseCall(call, tool, { kind: 'Failed', message })
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

/** The reason comes first, because a long list of tools may be cut. */
function goneText(name: string, tools: Tools): string {
  return limitText(`The tool "${name}" is no longer there, and did not run; ${knownText(tools)}`)
}

function knownText(tools: Tools): string {
  return tools.size > 0 ? `choose one of: ${[...tools.keys()].join(', ')}` : 'there are no tools here'
}

function unknownText(name: string, tools: Tools, written: JsonObject | null): string {
  const known = knownText(tools)
  return limitText([`unknown tool "${clipText(name, 64)}"`, ...receivedFields(written), known].join('; '))
}

// The error text for refused arguments: the tool, each problem, the received fields and the expected fields. It holds
// only names, types, lengths and short previews, and never repeats content.

type Issue = { readonly message: string; readonly path?: readonly unknown[] | undefined }

const TEXT_BYTES_MAX = 2048
const PREVIEW_MAX = 40
const MESSAGE_MAX = 160
const ISSUES_MAX = 8
const FIELDS_MAX = 12

function invalidText(tool: Tool, reading: ArgumentReading, issues: readonly Issue[]): string {
  const { written } = reading
  const head = `Invalid arguments for "${tool.name}":`
  const problem = describeProblem(reading)
  const bullets = issues.slice(0, ISSUES_MAX).map((issue) => issueLine(issue, written))
  if (issues.length > ISSUES_MAX) bullets.push(`- and ${issues.length - ISSUES_MAX} more problems`)
  const first = problem === '' ? head : `${head} ${problem}`
  return limitText([first, ...bullets, ...receivedFields(written), ...expectedFields(tool)].join('\n'))
}

/** Cuts the text to 2 KB without leaving half a character at the end. */
function limitText(text: string): string {
  if (text.length * 3 <= TEXT_BYTES_MAX || Buffer.byteLength(text) <= TEXT_BYTES_MAX) return text
  const cut = Buffer.from(text).subarray(0, TEXT_BYTES_MAX - 3)
  return `${cut.toString().replace(/\uFFFD+$/, '')}…`
}

function describeProblem({ closed, written }: ArgumentReading): string {
  if (closed === null) return written === null ? 'not a JSON object.' : ''
  if (closed === 'unreadable') return 'not valid JSON. Nothing was run; send one JSON object.'
  const where = { none: 'is not closed', tail: 'does not end as it should', value: 'ends inside a value' }[closed.lost]
  return `not valid JSON: the text ${where}, so a part may be missing. Nothing was run; send the whole object again.`
}

function issuePath({ path = [] }: Issue): readonly string[] {
  return path.map((step) => String(step !== null && typeof step === 'object' && 'key' in step ? step.key : step))
}

function issueLine(issue: Issue, written: JsonObject | null): string {
  const path = issuePath(issue)
  const at = path.length > 0 ? clipText(path.join('.'), 80) : '<root>'
  const got = path.length > 0 ? valueAt(written, path) : undefined
  return `- ${at}: ${clipText(issue.message, MESSAGE_MAX)}${got === undefined ? '' : ` (got ${previewValue(got)})`}`
}

function valueAt(value: Json, path: readonly string[]): Json | undefined {
  let found: Json | undefined = value
  for (const step of path) {
    if (found === null || typeof found !== 'object' || !Object.hasOwn(found, step)) return undefined
    found = (found as JsonObject)[step]
  }
  return found
}

function receivedFields(written: JsonObject | null): readonly string[] {
  if (written === null) return []
  const names = Object.keys(written)
  if (names.length === 0) return ['Received: no fields']
  const fields = names
    .slice(0, FIELDS_MAX)
    .map((name) => `${clipText(name, PREVIEW_MAX)} ${summarizeValue(written[name] ?? null)}`)
  const more = names.length > FIELDS_MAX ? `, and ${names.length - FIELDS_MAX} more` : ''
  return [`Received: ${fields.join(', ')}${more}`]
}

function summarizeValue(value: Json): string {
  if (typeof value === 'string') return `(string, ${value.length} characters: ${previewValue(value)})`
  return value === null || typeof value === 'object'
    ? `(${previewValue(value)})`
    : `(${typeof value}: ${previewValue(value)})`
}

/** Shows only the first characters of a text, and nothing from inside a list or an object. */
function previewValue(value: Json): string {
  if (Array.isArray(value)) return `array, ${value.length} items`
  if (isObject(value)) return `object, ${Object.keys(value).length} fields`
  return clipText(JSON.stringify(typeof value === 'string' ? value.slice(0, PREVIEW_MAX) : value), PREVIEW_MAX)
}

function expectedFields(tool: Tool): readonly string[] {
  const shape = objectShape(shapesOf(tool.parameters, tool.parameters) ?? [], {})
  if (!shape?.fields) return []
  const names = [...shape.fields].slice(0, FIELDS_MAX).map(([name, schema]) => {
    const shapes: readonly SchemaShape[] = shapesOf(schema, tool.parameters) ?? []
    const types = new Set(shapes.flatMap(({ types: own }) => [...own]))
    return `${clipText(name, PREVIEW_MAX)}${shape.required.has(name) ? '' : '?'}: ${[...types].join('|') || 'any'}`
  })
  const more = shape.fields.size > FIELDS_MAX ? ', …' : ''
  return [`Expected: {${names.join(', ')}${more}}`]
}
