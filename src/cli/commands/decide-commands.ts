// `terret approve` and `terret reject`: one decision about one pending call, bound to the exact action that was shown.
// The decision is on disk when the command ends; `resume` continues the session.
import type { Pending, Rule, Sessions } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import { parseCallArgs, hasVoted, parseReply } from '../present/ask-approval.ts'
import { saveAlwaysRule, rememberableRule, ruleText } from '../present/always-rule.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { withoutDriving } from '../state/without-driving.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { pendingLines, votesText } from '../present/result-output.ts'
import { EXIT, CliError } from '../exit.ts'
import { folderOf } from '../state/session-folders.ts'
import { readHeldSession, heldLines } from '../present/held-session.ts'
import { readPending, waitingRoots } from '../state/read-log.ts'
import { remoteClient } from '../state/remote-server.ts'
import { findFolderHere, withStore, type CommandContext, findSession, workingFolder } from '../state/command-context.ts'
import { askPerson, isAttended, print, printJson, outputStyle, shortId, terretCommand, warn } from '../present/print.ts'
import { type FolderSetup, readSetup } from '../state/folder-setup.ts'
import { drivenElsewhere } from '../state/own-program.ts'
import { setupFlagsOf } from '../state/drive-session.ts'
import { resumeSession } from './resume-command.ts'

export const approveCommand = (call: CommandArgs): Promise<number> => withStore((place) => decideOne(place, call, true))
export const rejectCommand = (call: CommandArgs): Promise<number> => withStore((place) => decideOne(place, call, false))

const BUDGET = 'budget'

type RecordDecision = (sessions: Sessions) => Promise<unknown>

/**
 * Edited arguments are checked by the tools of the session's folder, if it is on this machine, because they resolve its
 * paths.
 */
async function decideEdited(
  place: CommandContext,
  call: CommandArgs,
  { root, agent }: Card,
  record: RecordDecision,
): Promise<void> {
  const { folder, isHere } = await findFolderHere(place, root)
  if (!isHere || remoteClient(place.store)) return void (await withoutDriving(place, record))
  const { Harnesses } = await import('../state/harnesses.ts')
  const harnesses = new Harnesses(place, call, { worker: { drives: false } })
  try {
    await record((await harnesses.of({ folder, agent })).harness)
  } finally {
    await harnesses.close()
  }
}

/** Drops the files of the original arguments: an edited call may be about other files. */
function withoutFiles({ files: _files, ...pending }: Pending): Pending {
  return pending
}

async function decideOne(place: CommandContext, call: CommandArgs, allow: boolean): Promise<number> {
  const [name, wanted] = call.words
  const card = name === undefined ? await findOnlyWaiting(place) : await findSession(place, name)
  const held = await readHeldSession(place.store, card.session)
  if (held) {
    const showing = { folder: await folderOf(place, card.root), ...outputStyle(process.stderr) }
    throw new CliError(EXIT.waits, (await heldLines(held, showing)).join('\n'))
  }
  const by = actorName(call)
  const why = call.text('why')
  const role = call.text('role')
  const word = { allow, by, ...(why === undefined ? {} : { why }), ...(role === undefined ? {} : { role }) }
  const asked = wanted === BUDGET ? null : await findPendingCall(place, card, wanted)
  const edit = asked && call.text('args') !== undefined ? { args: parseCallArgs(call.text('args') ?? '') } : {}
  const pending =
    asked && 'args' in edit
      ? { ...withoutFiles(asked), ...edit, edited: { by, args: asked.edited?.args ?? asked.args } }
      : asked
  if (pending && pending === asked && hasVoted(pending.votes ?? [], by)) {
    const text = `${oneLine(by)} approved call ${shownId(pending.callId)} already, and the first word stands: ${votesText(pending)}.`
    throw new CliError(EXIT.conflict, text)
  }
  const always = call.is('always') ? await alwaysRuleFor(place, call, card, pending) : null
  const folder = await folderOf(place, card.root)
  if (pending && !(await confirmDecision(call, pending, { allow, always, folder }))) {
    warn('Nothing was decided.')
    return EXIT.waits
  }
  const kept = always && saveAlwaysRule(always.setup, always.rule, by)
  const { digest, callId = BUDGET, sessionId = card.session } = pending ?? {}
  const usd = call.text('usd')
  const what = {
    callId,
    sessionId,
    ...(digest === undefined ? {} : { digest }),
    ...(usd === undefined ? {} : { usd: Number(usd) }),
    // A server does not record rules. The policy of this machine has the rule.
    ...(kept && !remoteClient(place.store) ? { remember: kept.rule } : {}),
    ...edit,
  }
  const record: RecordDecision = (sessions) =>
    sessions.session(sessionId, { stored: true }).decide({ ...what, ...word })
  await ('args' in edit ? decideEdited(place, call, card, record) : withoutDriving(place, record))
  const { root } = card
  const open = (await readPending(place.store, root)).find(
    (each) => each.callId === callId && each.sessionId === sessionId,
  )
  const elsewhere = drivenElsewhere(place, card)
  if (call.is('resume') && !open && elsewhere === null)
    return resumeSession(place, (await place.store.card(root)) ?? card, call)
  if (call.is('json')) {
    const { votes = null, n = null } = open ?? {}
    const decided = { session: sessionId, callId, tool: pending?.tool ?? BUDGET, allow, by, digest: digest ?? null }
    printJson({ ...decided, ...edit, ...(open ? { votes, n } : {}), ...(kept ? { remember: kept.rule } : {}) })
  } else {
    print(
      `${allow ? (pending === asked ? 'Approved' : 'Edited and approved') : 'Rejected'} ${oneLine(pending?.tool ?? BUDGET)} (call ${shownId(callId)}) as ${oneLine(by)}.`,
    )
    warn(open ? missingVotesText(open) : (elsewhere ?? `Go on with: ${terretCommand`resume ${root}`}`))
  }
  return open ? EXIT.waits : EXIT.ok
}

/** The message after one vote of several. */
function missingVotesText(pending: Pending): string {
  const { sessionId, callId, n = 1, votes = [] } = pending
  const missing = n - votes.length
  const [role] = pending.roles ?? []
  const others = `${missing} more ${missing === 1 ? 'person' : 'people'}`
  const command =
    role === undefined
      ? terretCommand`approve ${sessionId} ${callId} --by NAME`
      : terretCommand`approve ${sessionId} ${callId} --by NAME --role ${role}`
  return `${votesText(pending)}. ${others} must approve it: ${command}`
}

type AlwaysRule = { readonly setup: FolderSetup; readonly rule: Rule }

/** The rule that `--always` would save. If it would have no effect, the command is refused before the decision. */
async function alwaysRuleFor(
  place: CommandContext,
  call: CommandArgs,
  { root }: Card,
  pending: Pending | null,
): Promise<AlwaysRule> {
  const setup = await readSetup(place.home, await workingFolder(place, root), setupFlagsOf(call))
  const rule = pending && (await rememberableRule(setup, pending))
  if (rule) return { setup, rule }
  const why = 'This call is asked about each time, so a saved rule would have no effect. Approve it without --always.'
  throw new CliError(EXIT.usage, why)
}

/** The session of the only call in this folder that waits for an approval. */
async function findOnlyWaiting(place: CommandContext): Promise<Card> {
  const roots = await waitingRoots(place, false)
  const all = (await Promise.all(roots.map((root) => readPending(place.store, root)))).flat()
  const [only, ...others] = all.filter(({ needs, callId }) => needs === 'approval' && callId !== BUDGET)
  const card = only && (await place.store.card(only.sessionId))
  if (!only || !card) {
    const why = all.length === 0 ? '' : ` \`${terretCommand`pending`}\` shows what else waits for you.`
    throw new CliError(EXIT.conflict, `No call of this folder waits for an approval.${why}`)
  }
  if (others.length === 0) return card
  throw severalWait([only, ...others])
}

function severalWait(found: readonly Pending[]): CliError {
  const names = found.map(
    ({ sessionId, callId, tool }) => `${shortId(sessionId)} ${shownId(callId)} (${oneLine(tool)})`,
  )
  return new CliError(EXIT.usage, `Several calls wait. Name one of them: ${names.join(', ')}`)
}

/** The named call, or the only pending one. */
async function findPendingCall(
  { store }: CommandContext,
  { session, root }: Card,
  wanted: string | undefined,
): Promise<Pending> {
  const all = (await readPending(store, root)).filter(({ needs }) => needs === 'approval')
  const here = all.filter(({ sessionId }) => session === root || sessionId === session)
  const found = wanted === undefined ? here : here.filter(({ callId }) => callId === wanted)
  const [only] = found
  if (only && found.length === 1) return only
  if (found.length > 1) throw severalWait(found)
  if (wanted === undefined)
    throw new CliError(
      EXIT.conflict,
      `Nothing of session ${shortId(session)} waits for an approval: it was decided, it expired, its run was interrupted, or nothing was asked.`,
    )
  const known = /^\d+\.\d+$/.test(wanted) && Number(wanted.split('.')[0]) <= ((await store.card(session))?.seq ?? 0)
  if (known)
    throw new CliError(
      EXIT.conflict,
      `Call ${wanted} does not wait for an approval any more: it was decided, it expired, or its run was interrupted.`,
    )
  throw new CliError(
    EXIT.missing,
    `Session ${shortId(session)} has no call "${shownId(wanted)}". \`${terretCommand`pending ${session}`}\` shows what waits.`,
  )
}

type ConfirmOptions = { readonly allow: boolean; readonly always: AlwaysRule | null; readonly folder: string | null }

/** Shows the exact action. At a terminal it asks for confirmation; in a script the command itself is the decision. */
async function confirmDecision(call: CommandArgs, pending: Pending, meant: ConfirmOptions): Promise<boolean> {
  const { allow, always, folder } = meant
  const asks = !call.is('yes') && !call.is('json') && isAttended()
  const seat = (whole: boolean) => outputStyle(process.stderr, whole || call.is('whole'))
  const way = asks ? `d shows all of it; so does: ${terretCommand`pending ${pending.sessionId} --whole`}` : undefined
  const show = async (whole: boolean): Promise<void> => {
    for (const line of await pendingLines(pending, { folder, ...seat(whole), ...(way ? { way } : {}) })) warn(line)
  }
  if (!call.is('json')) await show(false)
  if (always && !call.is('json')) warn(await ruleText(always.setup, always.rule))
  if (!asks) return true
  const what = `${allow ? 'Approve' : 'Reject'} exactly this${always ? ', now and always' : ''}, and no other call?`
  for (;;) {
    const said = parseReply(await askPerson(`${what} [y/N/d] `))
    if (said.type !== 'whole') return said.type === 'yes'
    await show(true)
  }
}
