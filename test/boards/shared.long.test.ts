// A board that several share: its rules, claims from several processes, and claims of members that have ended.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { boardPlanner, type Member, openBoard } from '../../src/boards/index.ts'
import { answerChanges } from '../../src/boards/board-planner.ts'
import { applyBoardChange, type BoardChange, type SharedBoard } from '../../src/boards/shared-board.ts'
import { Harness, memory, scripted, type CompleteStore } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'

const worker = (name: string, session?: string): Member => ({ name, role: 'worker', ...(session ? { session } : {}) })
const ANA_AND_BOB = [worker('ana'), worker('bob')]
/** The same program as the children's, with fewer tools: it says so, and may stop what they began. */
const on = (store: CompleteStore) =>
  new Harness({ model: scripted(['.']), store, program: 'unnamed', graphs: [boardPlanner()] })

const folder = mkdtempSync(join(tmpdir(), 'terret-board-'))
const running: ChildProcess[] = []
afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL')
})

describe('what is refused', () => {
  const open = (members: readonly Member[], cards: readonly { text: string; needs?: readonly string[] }[]) => {
    const { board, outcome } = applyBoardChange(null, { id: '1', by: 'host', action: 'open', members, cards })
    return outcome.type === 'Refused' ? outcome.why : board
  }

  it('B-BOARD-20: members of one name, needs of itself, in a circle or of no card are refused by name, and so are too many cards', () => {
    expect(open([worker('ana'), worker('ana')], [])).toBe('DuplicateMember')
    expect(open([worker('a~b')], [])).toBe('BadName')
    expect(open([worker('host')], [])).toBe('BadName')
    expect(open(ANA_AND_BOB, [{ text: 'a', needs: ['t1'] }])).toBe('SelfDependency')
    expect(
      open(ANA_AND_BOB, [
        { text: 'a', needs: ['t2'] },
        { text: 'b', needs: ['t1'] },
      ]),
    ).toBe('CyclicDependency')
    expect(open(ANA_AND_BOB, [{ text: 'a', needs: ['t9'] }])).toBe('UnknownDependency')
    expect(
      open(
        ANA_AND_BOB,
        Array.from({ length: 5_000 }, () => ({ text: 'a' })),
      ),
    ).toBe('TooManyCards')
    expect(open(ANA_AND_BOB, [{ text: 'x'.repeat(501) }])).toBe('TextTooLong')
    expect(open(ANA_AND_BOB, [{ text: 'a', needs: ['t2'] }, { text: 'b' }])).toMatchObject({ made: 2 })
  })

  it('B-BOARD-21: a claim has one of six outcomes, and a caller who is no member claims nothing', async () => {
    const harness = on(memory())
    const cards = [{ text: 'a' }, { text: 'b', needs: ['t1'] }]
    const board = await openBoard(harness, { members: [...ANA_AND_BOB, worker('eve')], cards })
    await expect(board.claim('zed')).rejects.toMatchObject({ code: 'invalid_input', detail: 'NotMember' })
    expect(await board.claim('ana', { card: 't9' })).toEqual({ type: 'UnknownTask' })
    expect(await board.claim('ana', { card: 't2' })).toEqual({ type: 'Blocked', unmet: ['t1'] })
    expect(await board.claim('ana')).toMatchObject({ type: 'Started', attempt: 1, card: { id: 't1', by: 'ana' } })
    expect(await board.claim('ana', { card: 't2' })).toEqual({ type: 'AlreadyActive', card: 't1' })
    expect(await board.claim('bob', { card: 't1' })).toEqual({ type: 'AlreadyClaimed', by: 'ana' })
    expect(await board.claim('bob')).toEqual({ type: 'NoClaimableTask' })
    await board.complete('ana', { card: 't1', attempt: 1, note: 'see report.md' })
    expect(await board.claim('bob')).toMatchObject({ type: 'Started', card: { id: 't2' } })
    await expect(board.complete('eve', { card: 't2', attempt: 1 })).rejects.toMatchObject({ detail: 'NotHolder' })
    await expect(board.leave('host', 'zed')).rejects.toMatchObject({ detail: 'UnknownMember' })
    await expect(board.add('bob', [{ text: 'c' }])).rejects.toMatchObject({ detail: 'NotMember' })
    await harness.close()
  })

  it('B-BOARD-22: a claim on a card that changed after the version it saw is refused, and the next look takes it', async () => {
    const claim = (id: string, by: string, version: number): BoardChange => ({
      id,
      by,
      version,
      action: 'claim',
      card: 't1',
    })
    const opened = applyBoardChange(null, {
      id: '0',
      by: 'host',
      action: 'open',
      members: ANA_AND_BOB,
      cards: [{ text: 'a' }],
    })
    const seen = opened.board as SharedBoard
    const held = applyBoardChange(seen, claim('1', 'ana', seen.version)).board
    const back = applyBoardChange(held, { id: '2', by: 'ana', action: 'fail', card: 't1', attempt: 1 })
      .board as SharedBoard
    expect(applyBoardChange(back, claim('3', 'bob', seen.version)).outcome).toMatchObject({
      type: 'Refused',
      why: 'StaleVersion',
    })
    expect(applyBoardChange(back, claim('3', 'bob', back.version)).outcome).toMatchObject({
      type: 'Started',
      attempt: 2,
    })
  })

  it('B-BOARD-23: a message that is no change is refused, and the board stays as it is', () => {
    const said = (seq: number, text: string) => ({ role: 'user', seq, parts: [{ type: 'text', text }] }) as const
    const open = JSON.stringify({ id: 'o', by: 'host', action: 'open', members: ANA_AND_BOB, cards: [{ text: 'a' }] })
    const odd = '{"id":"x","by":"ana","action":"claim","card":"t1","force":true}'
    const { board, answers } = answerChanges([said(2, 'Hello?'), said(3, open), said(4, odd)])
    expect(board?.cards).toMatchObject([{ id: 't1', status: 'todo' }])
    expect(answers).toMatchObject({ '#2': { why: 'Unreadable' }, o: { type: 'Changed' }, '#4': { why: 'Unreadable' } })
  })
})

describe('a claim', () => {
  it('B-BOARD-24: of 50 at once on one card from four processes one is Started and 49 are AlreadyClaimed (E11)', async () => {
    const file = join(folder, 'e11.db')
    const store = sqlite(file)
    const harness = on(store)
    const members = Array.from({ length: 50 }, (_, i) => worker(`m${i}`))
    const board = await openBoard(harness, { id: 'b', members, cards: [{ text: 'the one' }] })
    const children = [0, 13, 26, 38].map((from, i) => child('claim', file, 'b', 't1', `${from}`, `${i < 2 ? 13 : 12}`))
    await Promise.all(children.map(({ line }) => line()))
    for (const { process: one } of children) one.stdin?.write('go\n')
    const said = (await Promise.all(children.map(({ line }) => line()))).flatMap((text) => JSON.parse(text) as string[])
    expect(said.toSorted()).toEqual([...Array.from({ length: 49 }, () => 'AlreadyClaimed'), 'Started'])
    expect((await board.read()).cards[0]).toMatchObject({ status: 'in_progress', attempts: 1 })
    await harness.close()
    await store.close()
  }, 60_000)

  it('B-BOARD-25: a killed member keeps its card while its session can be taken up; once that ended, the card is free and its attempt counted (E12)', async () => {
    const file = join(folder, 'e12.db')
    const store = sqlite(file)
    const idle = on(store)
    await idle.open({ id: 'ana' })
    const board = await openBoard(idle, {
      id: 'b',
      members: [worker('ana', 'ana'), worker('bob')],
      cards: [{ text: 'a' }],
    })
    const member = child('hold', file, 'b')
    expect(await member.line()).toBe('Started')
    member.process.kill('SIGKILL')
    expect(await board.claim('bob', { card: 't1' })).toEqual({ type: 'AlreadyClaimed', by: 'ana' })
    await idle.session('ana').interrupt()
    await idle.session('ana').run()
    expect((await idle.session('ana', { stored: true }).status({ include: ['card'] })).card.outcome).toBe('interrupted')
    expect(await board.claim('bob')).toMatchObject({ type: 'Started', attempt: 2, card: { id: 't1', by: 'bob' } })
    await expect(board.complete('ana', { card: 't1', attempt: 1 })).rejects.toMatchObject({ detail: 'NotHolder' })
    expect((await board.read()).cards[0]).toMatchObject({ by: 'bob', status: 'in_progress' })
    await idle.close()
    await store.close()
  }, 60_000)

  it('B-BOARD-26: after three tries a card is blocked for a person to look at, and leaving gives cards back', async () => {
    const harness = on(memory())
    const board = await openBoard(harness, { members: ANA_AND_BOB, cards: [{ text: 'a' }] })
    for (const attempt of [1, 2]) {
      expect(await board.claim('ana')).toMatchObject({ type: 'Started', attempt })
      await board.fail('ana', { card: 't1', attempt, note: 'no idea' })
    }
    await board.claim('bob')
    await board.leave('host', 'bob')
    expect((await board.read()).cards[0]).toMatchObject({
      status: 'blocked',
      attempts: 3,
      note: 'bob left; tried 3 times',
    })
    expect(await board.claim('ana', { card: 't1' })).toEqual({ type: 'Blocked', unmet: [] })
    await harness.close()
  })

  it('B-BOARD-46: a card that is given back counts as tried, so members do not hand it on for ever', async () => {
    const harness = on(memory())
    const board = await openBoard(harness, { members: ANA_AND_BOB, cards: [{ text: 'a' }], attemptsMax: 2 })
    for (const [by, attempt, status] of [
      ['ana', 1, 'todo'],
      ['bob', 2, 'blocked'],
    ] as const) {
      expect(await board.claim(by)).toMatchObject({ type: 'Started', attempt })
      await board.release(by, { card: 't1', attempt, note: 'not mine' })
      expect((await board.read()).cards[0]).toMatchObject({ status, attempts: attempt })
    }
    expect((await board.read()).cards[0]?.note).toBe('not mine; tried 2 times')
    await harness.close()
  })

  it('B-BOARD-27: the same word under the same key is said once, also where its first answer was lost', async () => {
    const harness = on(memory())
    const board = await openBoard(harness, { members: ANA_AND_BOB, cards: [{ text: 'a' }] })
    const first = await board.claim('ana', { key: 'k' })
    const { version } = await board.read()
    expect(await board.claim('ana', { key: 'k' })).toEqual(first)
    expect((await board.read()).version).toBe(version)
    await harness.close()
  })
})

it('B-BOARD-28: a change that a hook removed before the board read it is sent again, and counts once', async () => {
  let held = 0
  const hook = {
    type: 'user_prompt_submit',
    run: ({ prompt }: { prompt: string }) =>
      prompt.includes('claim') && held++ < 2 ? { cancel: 'Not now.' } : undefined,
  } as const
  const harness = new Harness({ model: scripted(['.']), graphs: [boardPlanner()], hooks: [hook] })
  const board = await openBoard(harness, { members: ANA_AND_BOB, cards: [{ text: 'a' }] })
  expect(await board.claim('ana', { key: 'k' })).toMatchObject({ type: 'Started', attempt: 1 })
  expect([held, (await board.read()).cards[0]?.attempts]).toEqual([3, 1])
  const said = (text: string) => ({ role: 'user', seq: 2, parts: [{ type: 'text', text }] }) as const
  const open = JSON.stringify({ id: 'o', by: 'host', action: 'open', members: ANA_AND_BOB, cards: [{ text: 'a' }] })
  const claim = JSON.stringify({ id: 'k', by: 'ana', action: 'claim', card: 't1' })
  const twice = answerChanges([said(open), said(claim), said(claim)])
  expect(twice.board?.cards[0]?.attempts).toBe(1)
  await harness.close()
})

it('B-BOARD-29: a change that is sent again after it was read is answered as before, and counts once', () => {
  const said = (change: object) =>
    ({ role: 'user', seq: 2, parts: [{ type: 'text', text: JSON.stringify(change) }] }) as const
  const open = { id: 'o', by: 'host', action: 'open', members: ANA_AND_BOB, cards: [{ text: 'a' }, { text: 'b' }] }
  const claim = { id: 'k', by: 'ana', action: 'claim', card: 't1' }
  const before = [said(open), said(claim)]
  const first = answerChanges(before)
  const reply = {
    role: 'assistant',
    seq: 3,
    parts: [{ type: 'text', text: JSON.stringify(first) }],
    calls: [],
  } as const
  const next = answerChanges([...before, reply, said({ ...claim, again: true })])
  expect(next).toEqual({ board: first.board, answers: { k: first.answers['k'] } })
  // One that was never read is a change like any other.
  const fresh = answerChanges([said(open), said({ ...claim, again: true })])
  expect(fresh.answers['k']).toMatchObject({ type: 'Started', attempt: 1 })
})

function child(...args: readonly string[]) {
  const script = fileURLToPath(new URL('../../.build/test/boards/child-claims.js', import.meta.url))
  const started = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  running.push(started)
  let [buffer, closed] = ['', false]
  const wake: (() => void)[] = []
  started.stdout.on('data', (data: Buffer) => {
    buffer += data.toString()
    for (const one of wake.splice(0)) one()
  })
  started.on('close', () => {
    closed = true
    for (const one of wake.splice(0)) one()
  })
  const line = async (): Promise<string> => {
    for (;;) {
      const end = buffer.indexOf('\n')
      if (end >= 0) {
        const text = buffer.slice(0, end)
        buffer = buffer.slice(end + 1)
        return text
      }
      if (closed) throw new Error('the process ended')
      await new Promise<void>((resolve) => wake.push(resolve))
    }
  }
  return { process: started, line }
}
