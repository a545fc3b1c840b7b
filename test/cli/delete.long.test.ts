// Removing sessions: one by name, or the old ones, with everything kept of them, and never one that is still needed.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { forgetFolders, recordFolder, readSessionFolders } from '../../src/cli/state/session-folders.ts'
import { findHome, makeHome } from '../../src/cli/state/cli-home.ts'
import type { Card, Removal, CompleteStore } from '../../src/ports/store.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { claim, create, message, ownerWrite, StillClock } from '../contract/fixture.ts'
import { stageOfEach } from './scripted.ts'
import { lastLine } from './stage.ts'
import { noTmux, openScreen } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()

type Ran = { readonly session: string }
type Pruned = {
  readonly removed: readonly Removal[]
  readonly would: readonly { readonly session: string }[]
  readonly kept: Readonly<Record<string, number>>
}
const offline = ['--model', 'offline:any'] as const
const DAY_MS = 86_400_000

/** The database of the stage, at a time in the past. */
async function longAgo<T>(days: number, act: (store: CompleteStore, now: number) => Promise<T>): Promise<T> {
  makeHome(findHome(stage.env))
  const clock = new StillClock()
  clock.time = Date.now() - days * DAY_MS
  const store = sqlite(join(stage.home, 'terret.db'), { clock })
  try {
    return await act(store, clock.time)
  } finally {
    await store.close()
  }
}

async function old(
  session: string,
  over: Partial<Card> = {},
  { days = 40, folder = stage.folder } = {},
): Promise<void> {
  makeHome(findHome(stage.env))
  recordFolder(findHome(stage.env), { session, folder })
  await longAgo(days, (store) => create(store, session, over))
}

async function forkOf(session: string, origin: string, days = 40): Promise<void> {
  recordFolder(findHome(stage.env), { session, folder: stage.folder })
  const body = { type: 'session.created', agent: 'a', planner: 'model', fork: { session: origin, seq: 1 } } as const
  await longAgo(days, (store) => store.commit([ownerWrite(store, { session, worker: '', epoch: 0, seq: 0 }, [body])]))
}

const listed = async (): Promise<readonly string[]> =>
  (await stage.terret('list', '--all', '--json')).out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as Ran).session)
    .sort()

describe('delete', () => {
  it('B-CLI-100: takes a session out with its folder, its runtime files and its traces; list and latest go on without it', async () => {
    stage.configure({ model: 'offline:any', tracing: { local: true } })
    const ran: string[] = []
    for (const task of ['One.', 'Two.', 'Three.']) ran.push(((await stage.json('run', task)) as Ran).session)
    const [one = '', two = '', three = ''] = ran
    const [project = ''] = readdirSync(join(stage.home, 'traces'))
    const traces = join(stage.home, 'traces', project)
    for (const session of ran) {
      mkdirSync(join(stage.home, 'sessions', session), { recursive: true })
      writeFileSync(join(stage.home, 'sessions', session, 'session-state.md'), 'state')
    }
    expect(readdirSync(traces)).toHaveLength(3)
    const { code, out, err } = await stage.terret('delete', three.slice(0, 8), '--yes', '--by', 'ann')
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^Removed session [0-9a-f]{8} for good: \d+ events, [\d.]+ kB\.\n$/),
    ])
    for (const text of [three, stage.folder, 'Three.', 'completed']) expect(err).toContain(text)
    expect(await stage.json('inspect', 'latest')).toMatchObject({ session: two })
    expect(await stage.json('delete', 'latest', '--yes')).toMatchObject({
      session: two,
      folder: stage.folder,
      events: 7,
    })
    expect((await stage.terret('list')).out).toMatch(/^[0-9a-f]{8} .*One\.\n$/)
    expect(readdirSync(traces)).toHaveLength(1)
    expect(readdirSync(join(stage.home, 'sessions'))).toEqual([one])
    expect(existsSync(join(stage.home, 'folders.jsonl'))).toBe(false)
    const log = await longAgo(0, (store) => store.removals(9))
    expect(log.map(({ session, by }) => [session, by])).toEqual([
      [two, expect.stringMatching(/./)],
      [three, 'ann'],
    ])
    await stage.terret('delete', one, '--yes')
    expect([existsSync(traces), (await stage.terret('list')).out]).toEqual([false, ''])
    expect((await stage.terret('inspect', 'latest')).code).toBe(6)
  })

  it('B-CLI-101: where no person can be asked, delete and prune want --yes, say what would be lost, and take nothing', async () => {
    await old('s')
    for (const [args, text] of [
      [
        ['delete', 's'],
        'Session s has 1 event, and is gone for good when it is removed. Confirm with: terret delete s --yes',
      ],
      [['delete', 's', '--json'], 'terret delete s --yes'],
      [
        ['prune', '--older', '30'],
        'This removes 1 session older than 30 days, with 1 event, for good. Confirm with --yes',
      ],
      [['prune', '--older', '30', '--json'], 'Confirm with --yes'],
    ] as const) {
      const { code, out, err } = await stage.terret(...args)
      expect([code, out]).toEqual([2, ''])
      expect(err).toMatch(/^terret: [^\n]*\n$/)
      expect(err).toContain(text)
    }
    expect(await listed()).toEqual(['s'])
  })

  it('B-CLI-102: one that is driven, that a fork reads, or that is a part of another is refused in one line and stays', async () => {
    await old('root')
    await longAgo(40, (store) => create(store, 'root~1.0', { root: 'root' }))
    await forkOf('fork', 'root')
    await old('driven')
    await longAgo(0, (store) => store.claim('driven', 'w', 600_000))
    for (const [id, exit, text] of [
      ['root', 9, 'Session fork was forked from session root and reads its log. Remove that one first. (conflict)'],
      [
        'root~1.0',
        2,
        'Session root~1.0 is a part of session root. Remove that one, with all its parts. (invalid_input)',
      ],
      ['driven', 9, 'Session driven is being driven. Interrupt it, or try again when it rests. (session_busy)'],
      ['none', 6, 'There is no session "none". `terret list --all` shows those there are.'],
    ] as const) {
      const { code, out, err } = await stage.terret('delete', id, '--yes')
      expect([code, out, lastLine(err)]).toEqual([exit, '', `terret: ${text}`])
    }
    expect(await listed()).toEqual(['driven', 'fork', 'root'])
    expect(readSessionFolders(findHome(stage.env))).toHaveLength(3)
    expect((await stage.terret('delete', 'fork', '--yes')).code).toBe(0)
    const { code, err } = await stage.terret('delete', 'root', '--yes')
    expect(code).toBe(0)
    expect(err).toContain('Events    2, with 1 subagent session')
    expect(await longAgo(0, (store) => store.list({ root: 'root', limit: 9 }))).toEqual([])
  })

  it('B-CLI-103: a follower of a session that is removed is told that it is gone', async () => {
    const { session } = (await stage.json('run', ...offline, 'One.')) as Ran
    const tail = stage.start(['tail', session])
    await tail.says('run.settled')
    await stage.terret('delete', session, '--yes')
    expect(await tail.ended).toMatchObject({
      code: 6,
      err: `terret: There is no session ${session}. Check the id, or open a new one. (session_missing)\n`,
    })
    expect((await stage.terret('resume', session)).code).toBe(6)
  })
})

describe('prune', () => {
  it('B-CLI-110: takes out what is older than so many days, of this folder, of one status, or of all folders', async () => {
    await old('here-idle')
    await old('here-closed', { status: 'terminated' })
    await old('here-young', {}, { days: 20 })
    await old('there', {}, { folder: stage.home })
    await longAgo(40, (store) => create(store, 'nowhere'))
    expect(((await stage.json('prune', '--older', '30', '--dry-run')) as Pruned).would).toHaveLength(2)
    const dry = await stage.terret('prune', '--older', '30', '--dry-run')
    expect(dry.out).toMatch(/^here-closed .*1 event\b.*\nhere-idle .*\n$/)
    expect(dry.err).toBe('2 sessions would be removed. Nothing was.\n')
    expect(await listed()).toHaveLength(5)
    const closed = (await stage.json(
      'prune',
      '--older',
      '30',
      '--status',
      'terminated',
      '--yes',
      '--by',
      'ann',
    )) as Pruned
    expect(closed.removed).toMatchObject([{ session: 'here-closed', by: 'ann', events: 1 }])
    const { code, out } = await stage.terret('prune', '--older', '30', '--yes')
    expect([code, out]).toEqual([0, expect.stringMatching(/^Removed 1 session for good: 1 event, \d+ bytes\.\n$/)])
    expect(await listed()).toEqual(['here-young', 'nowhere', 'there'])
    await stage.terret('prune', '--older', '30', '--yes', '--all')
    expect(await listed()).toEqual(['here-young'])
    expect(readSessionFolders(findHome(stage.env)).map(({ session }) => session)).toEqual(['here-young'])
    expect((await stage.terret('prune', '--older', '30', '--yes')).out).toBe(
      'There was no session to remove that is older than 30 days.\n',
    )
  })

  it('B-CLI-111: never takes one that runs, waits for a person, wakes later or is read by a fork; they are counted and said', async () => {
    await old('running', { status: 'running', due: 5 })
    await old('sent')
    await longAgo(39, (store) => store.commit([{ session: 'sent', lane: 'inbox', events: [message('m')] }]))
    await old('waiting', { status: 'requires_action' })
    await old('left-alone', { status: 'running', due: 5 })
    await longAgo(38, async (store) => {
      const { epoch } = await claim(store, 'left-alone', 'w')
      await store.release('left-alone', epoch, { attempts: 5, reason: 'it fails', until: null })
    })
    await old('wakes', { status: 'rescheduling', due: Date.now() + DAY_MS, wakes: 1 })
    await old('parent', { status: 'running', waits: ['1.0'] })
    await longAgo(40, (store) => create(store, 'parent~1.0', { root: 'parent', status: 'requires_action' }))
    await old('origin')
    await forkOf('fork', 'origin', 3)
    await old('driven')
    await longAgo(0, (store) => store.claim('driven', 'w', 600_000))
    await old('done')
    const kept = { running: 2, waiting: 3, wakes: 1, forked: 1 }
    expect(await stage.json('prune', '--older', '30', '--dry-run')).toMatchObject({ kept })
    const { code, out, err } = await stage.terret('prune', '--older', '30', '--yes')
    expect([code, out]).toEqual([0, expect.stringMatching(/^Removed 1 session for good/)])
    expect(err).toBe(
      'Of those as old, these stay: 3 with work to do, 3 waiting for a person, 1 with a wake to come, 1 that a fork reads.\n',
    )
    const stay = ['driven', 'fork', 'left-alone', 'origin', 'parent', 'running', 'sent', 'waiting', 'wakes']
    expect(await listed()).toEqual(stay)
  })

  it('B-CLI-112: forks go with what they read, and the youngest event of a family counts for all of it', async () => {
    await old('origin')
    await forkOf('fork', 'origin')
    await forkOf('fork-of-fork', 'fork')
    await old('family')
    await longAgo(10, (store) => create(store, 'family~1.0', { root: 'family' }))
    const { would } = (await stage.json('prune', '--older', '30', '--dry-run')) as Pruned
    expect(would.map(({ session }) => session)).toEqual(['fork-of-fork', 'fork', 'origin'])
    const { removed } = (await stage.json('prune', '--older', '30', '--yes')) as Pruned
    expect(removed.map(({ session }) => session)).toEqual(['fork-of-fork', 'fork', 'origin'])
    expect(await listed()).toEqual(['family'])
  })

  it('B-CLI-113: what a removal that was cut short left beside the database is taken away by the next prune', async () => {
    for (const session of ['lost', 'stays']) {
      await old(session, {}, { days: 1 })
      mkdirSync(join(stage.home, 'sessions', session), { recursive: true })
    }
    await longAgo(0, (store) => store.remove('lost', 'ann'))
    await stage.terret('prune', '--older', '30', '--dry-run')
    expect(readdirSync(join(stage.home, 'sessions'))).toEqual(['lost', 'stays'])
    expect((await stage.terret('prune', '--older', '30', '--yes')).code).toBe(0)
    expect(readdirSync(join(stage.home, 'sessions'))).toEqual(['stays'])
    expect(readSessionFolders(findHome(stage.env))).toEqual([{ session: 'stays', folder: stage.folder }])
  })

  it.each([
    ['prune', 'The age is missing. Usage: terret prune --older DAYS (--dry-run only shows the sessions)'],
    ['prune --older 1.5', '--older must be a whole number from 0 on, not "1.5".'],
    ['prune --older 1 --status running', '--status must be one of: idle, terminated. Others are never pruned.'],
    ['delete', 'Wrong number of arguments. Usage: terret delete ID'],
  ])('B-CLI-114: `terret %s` is refused in one line, and nothing is made', async (line, text) => {
    const { code, out, err } = await stage.terret(...line.split(' '))
    expect({ code, out, err }).toEqual({ code: 2, out: '', err: `terret: ${text}\n` })
    expect(existsSync(stage.home)).toBe(false)
  })

  it('B-CLI-115: the line of a removed session is blanked where it stands: lines that others add meanwhile stay', async () => {
    const home = findHome(stage.env)
    makeHome(home)
    for (const session of ['ä', 'b', 'c']) recordFolder(home, { session, folder: stage.folder })
    const size = readFileSync(home.folders).length
    forgetFolders(home, new Set(['ä', 'c', 'unknown']))
    recordFolder(home, { session: 'd', folder: stage.folder })
    forgetFolders(home, new Set(['nobody']))
    expect(readSessionFolders(home).map(({ session }) => session)).toEqual(['b', 'd'])
    expect(readFileSync(home.folders).length).toBeGreaterThan(size)
    recordFolder(home, { session: 'c', folder: stage.home })
    expect(readSessionFolders(home).at(-1)).toEqual({ session: 'c', folder: stage.home })
  })

  it('B-CLI-116: nothing that was said in a run is left in the data folder', async () => {
    await scriptedBy(['A secret answer.'], { tracing: { local: true, content: true } })
    await stage.terret('run', 'A secret question.')
    expect(holding(stage.home, 'A secret')).not.toEqual([])
    expect((await stage.terret('prune', '--older', '0', '--yes')).code).toBe(0)
    expect(holding(stage.home, 'A secret')).toEqual([])
    expect((await stage.terret('list', '--all')).out).toBe('')
  })
})

describe.skipIf(noTmux)('at a terminal', { timeout: 60_000 }, () => {
  it('B-CLI-104: delete and prune show what is lost and ask; anything but yes takes nothing, with exit code 5', async () => {
    await old('one')
    await old('two')
    const no = await answered('delete one', 'Remove it for good? [y/N]', 'n')
    for (const text of [
      'Session   one',
      `Folder    ${stage.folder}`,
      'Events    1, the last one 2',
      'Nothing was removed.',
    ])
      expect(no).toContain(text)
    expect(no).toContain('exit 5')
    expect(await answered('prune --older 30', 'Remove them for good? [y/N]', '')).toContain('exit 5')
    expect(await listed()).toEqual(['one', 'two'])
    expect(await answered('delete one', '[y/N]', 'y')).toContain('Removed session one for good')
    const yes = await answered('prune --older 30', '[y/N]', 'yes')
    expect(yes).toContain('This removes 1 session older than 30 days, with 1 event.')
    expect(yes).toContain('exit 0')
    expect(await listed()).toEqual([])
  })
})

/** Runs it in a real terminal, answers its question, and returns what the screen has at the end. */
async function answered(line: string, question: string, answer: string): Promise<string> {
  const screen = openScreen(stage)
  screen.enter(`terret ${line}; echo exit $?`)
  await screen.until(question)
  screen.enter(answer)
  return screen.until(/\nexit \d+\n/)
}

/** The files below a folder that hold a text. */
function holding(folder: string, text: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.map((entry) => join(entry.parentPath, entry.name)).filter((path) => readFileSync(path).includes(text))
}
