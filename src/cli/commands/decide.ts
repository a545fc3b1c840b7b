// `terret approve` and `terret reject`: one decision about one pending call, bound to the exact action that was shown. It is on
// disk when the command ends; the session goes on with `resume`.
import type { Harness, Pending, Rule } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import { argsIn, keepAlways, rememberable, ruleText, hasVoted, wordOf } from '../present/approval.ts'
import { type Call, person } from '../args.ts'
import { aside } from '../state/without-driving.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { pendingLines, votesText } from '../present/ending.ts'
import { EXIT, Refusal } from '../exit.ts'
import { folderOf } from '../state/folders.ts'
import { heldIn, heldLines } from '../present/held.ts'
import { pendingIn } from '../state/log.ts'
import { clientOf } from '../state/far.ts'
import { folderHere, inPlace, type Place, sessionOf, workplaceOf } from '../state/place.ts'
import { ask, isAttended, print, printJson, seatOf, shortId, typed, warn } from '../present/print.ts'
import { type Setup, setupFor } from '../state/setup.ts'
import { drivenElsewhere } from '../state/program.ts'
import { wishesOf } from '../state/work.ts'
import { resumeSession } from './resume.ts'

export const approve = (call: Call): Promise<number> => inPlace((place) => decide(place, call, true))
export const reject = (call: Call): Promise<number> => inPlace((place) => decide(place, call, false))

const BUDGET = 'budget'

type Record = (harness: Harness) => Promise<unknown>

/** An edit is checked by the tools of the session's folder, where it is on this machine: they know where its paths lead. */
async function decideEdited(place: Place, call: Call, { root, agent }: Card, record: Record): Promise<void> {
  const { folder, isHere } = await folderHere(place, root)
  if (!isHere || clientOf(place.store)) return void (await aside(place, record))
  const { Harnesses } = await import('../state/harnesses.ts')
  const harnesses = new Harnesses(place, call, { drives: false })
  try {
    await record((await harnesses.of({ folder, agent })).harness)
  } finally {
    await harnesses.close()
  }
}

/** Of the arguments that the model gave: an edited call may be about other files. */
function withoutFiles({ files: _files, ...pending }: Pending): Pending {
  return pending
}

async function decide(place: Place, call: Call, allow: boolean): Promise<number> {
  const [name = '', wanted] = call.words
  const card = await sessionOf(place, name)
  const held = await heldIn(place.store, card.session)
  if (held) {
    const showing = { folder: await folderOf(place, card.root), ...seatOf(process.stderr) }
    throw new Refusal(EXIT.waits, (await heldLines(held, showing)).join('\n'))
  }
  const by = person(call)
  const why = call.text('why')
  const role = call.text('role')
  const word = { allow, by, ...(why === undefined ? {} : { why }), ...(role === undefined ? {} : { role }) }
  const asked = wanted === BUDGET ? null : await chosen(place, card, wanted)
  const edit = asked && call.text('args') !== undefined ? { args: argsIn(call.text('args') ?? '') } : {}
  const pending =
    asked && 'args' in edit
      ? { ...withoutFiles(asked), ...edit, edited: { by, args: asked.edited?.args ?? asked.args } }
      : asked
  if (pending && pending === asked && hasVoted(pending.votes ?? [], by)) {
    const text = `${oneLine(by)} approved call ${shownId(pending.callId)} already, and the first word stands: ${votesText(pending)}.`
    throw new Refusal(EXIT.conflict, text)
  }
  const always = call.is('always') ? await ruleFor(place, call, card, pending) : null
  const folder = await folderOf(place, card.root)
  if (pending && !(await isMeant(call, pending, { allow, always, folder }))) {
    warn('Nothing was decided.')
    return EXIT.waits
  }
  const kept = always && keepAlways(always.setup, always.rule, by)
  const { digest, callId = BUDGET, sessionId = card.session } = pending ?? {}
  const usd = call.text('usd')
  const what = {
    callId,
    sessionId,
    ...(digest === undefined ? {} : { digest }),
    ...(usd === undefined ? {} : { usd: Number(usd) }),
    ...(kept ? { remember: kept.rule } : {}),
    ...edit,
  }
  const record: Record = (harness) => harness.session(sessionId, { stored: true }).decide({ ...what, ...word })
  await ('args' in edit ? decideEdited(place, call, card, record) : aside(place, record))
  const { root } = card
  const open = (await pendingIn(place.store, root)).find(
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
    warn(open ? stillText(open) : (elsewhere ?? `Go on with: ${typed`resume ${root}`}`))
  }
  return open ? EXIT.waits : EXIT.ok
}

/** One vote of several. */
function stillText(pending: Pending): string {
  const { sessionId, callId, n = 1, votes = [] } = pending
  const missing = n - votes.length
  const [role] = pending.roles ?? []
  const others = `${missing} more ${missing === 1 ? 'person' : 'people'}`
  const command =
    role === undefined
      ? typed`approve ${sessionId} ${callId} --by NAME`
      : typed`approve ${sessionId} ${callId} --by NAME --role ${role}`
  return `${votesText(pending)}. ${others} must approve it: ${command}`
}

type Always = { readonly setup: Setup; readonly rule: Rule }

/** The rule `--always` would save. Refused before the decision if it would have no effect. */
async function ruleFor(place: Place, call: Call, { root }: Card, pending: Pending | null): Promise<Always> {
  const setup = await setupFor(place.home, await workplaceOf(place, root), wishesOf(call))
  const rule = pending && (await rememberable(setup, pending))
  if (rule) return { setup, rule }
  const why = 'This call is asked about each time, so a saved rule would have no effect. Approve it without --always.'
  throw new Refusal(EXIT.usage, why)
}

/** The named call, or the only pending one. */
async function chosen({ store }: Place, { session, root }: Card, wanted: string | undefined): Promise<Pending> {
  const all = (await pendingIn(store, root)).filter(({ needs }) => needs === 'approval')
  const here = all.filter(({ sessionId }) => session === root || sessionId === session)
  const found = wanted === undefined ? here : here.filter(({ callId }) => callId === wanted)
  const [only] = found
  if (only && found.length === 1) return only
  if (found.length > 1) {
    const names = found.map(
      ({ sessionId, callId, tool }) => `${shortId(sessionId)} ${shownId(callId)} (${oneLine(tool)})`,
    )
    throw new Refusal(EXIT.usage, `Several calls wait. Name one of them: ${names.join(', ')}`)
  }
  if (wanted === undefined)
    throw new Refusal(
      EXIT.conflict,
      `Nothing of session ${shortId(session)} waits for an approval: it was decided, it expired, its run was interrupted, or nothing was asked.`,
    )
  const known = /^\d+\.\d+$/.test(wanted) && Number(wanted.split('.')[0]) <= ((await store.card(session))?.seq ?? 0)
  if (known)
    throw new Refusal(
      EXIT.conflict,
      `Call ${wanted} does not wait for an approval any more: it was decided, it expired, or its run was interrupted.`,
    )
  throw new Refusal(
    EXIT.missing,
    `Session ${shortId(session)} has no call "${shownId(wanted)}". \`${typed`pending ${session}`}\` shows what waits.`,
  )
}

type Meant = { readonly allow: boolean; readonly always: Always | null; readonly folder: string | null }

/** Shows the exact action. At a terminal it asks for confirmation; in a script the command is the decision. */
async function isMeant(call: Call, pending: Pending, meant: Meant): Promise<boolean> {
  const { allow, always, folder } = meant
  const asks = !call.is('yes') && !call.is('json') && isAttended()
  const seat = (whole: boolean) => seatOf(process.stderr, whole || call.is('whole'))
  const way = asks ? `d shows all of it; so does: ${typed`pending ${pending.sessionId} --whole`}` : undefined
  const show = async (whole: boolean): Promise<void> => {
    for (const line of await pendingLines(pending, { folder, ...seat(whole), ...(way ? { way } : {}) })) warn(line)
  }
  if (!call.is('json')) await show(false)
  if (always && !call.is('json')) warn(await ruleText(always.setup, always.rule))
  if (!asks) return true
  const what = `${allow ? 'Approve' : 'Reject'} exactly this${always ? ', now and always' : ''}, and no other call?`
  for (;;) {
    const said = wordOf(await ask(`${what} [y/N/d] `))
    if (said.type !== 'whole') return said.type === 'yes'
    await show(true)
  }
}
