// Processes killed while a hook is asked, between its verdict and what follows from it, and right after a run ended.
// One process has them all, each in a store of its own; the script is child-hooks.ts.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Event } from '../../src/index.ts'
import { open } from '../stores/folder.ts'
import type { Played, Printed } from './child-hooks.ts'

type Case = Pick<Played, 'place' | 'effect' | 'verdict'>
type Killed = {
  /** What both processes noted, in order, and what the first one did. */
  readonly lines: readonly string[]
  readonly before: readonly string[]
  /** What the second one printed of the run. */
  readonly said: { readonly status: string; readonly calls: readonly (string | null)[] }
  readonly events: readonly Event[]
}

const CASES: readonly Case[] = [
  { place: 'in prompt hook', effect: 'read', verdict: 'allow' },
  { place: 'in before hook', effect: 'once', verdict: 'allow' },
  { place: 'intent written', effect: 'once', verdict: 'allow' },
  { place: 'intent written', effect: 'read', verdict: 'allow' },
  { place: 'denial written', effect: 'once', verdict: 'deny' },
  { place: 'in after hook', effect: 'once', verdict: 'allow' },
  { place: 'in end hook', effect: 'read', verdict: 'allow' },
  { place: 'end written', effect: 'read', verdict: 'allow' },
  { place: 'in step hook', effect: 'read', verdict: 'step' },
  { place: 'request written', effect: 'read', verdict: 'step' },
  { place: 'in model', effect: 'read', verdict: 'step' },
]

let folder = ''
let played: readonly Played[] = []
const before = new Map<string, readonly string[]>()
const printed = new Map<string, Printed>()

/** One process is killed when all sessions are at their places, and a second one goes on with all of them. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'terret-hooks-'))
  played = CASES.map((each, i) => {
    const file = join(folder, `${i}.db`)
    return { ...each, file, session: 'hooked', lines: join(folder, `${i}.txt`) }
  })
  const stopped = await printedBy(played)
  expect(stopped).toHaveLength(CASES.length)
  for (const each of played) {
    expect(stopped).toContainEqual({ file: each.file, at: each.place })
    before.set(each.file, linesIn(each))
  }
  const ended = await printedBy(played.map((each) => ({ ...each, place: 'nowhere' })))
  for (const each of ended) printed.set(each.file, each)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** What a process prints of its sessions, one line each. It is killed after the last line. */
async function printedBy(sessions: readonly Played[]): Promise<readonly Printed[]> {
  const child = spawn(process.execPath, [childFile(), JSON.stringify(sessions)])
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.stderr.pipe(process.stderr)
  const found: Printed[] = []
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      found.push(JSON.parse(line) as Printed)
      if (found.length === sessions.length) break
    }
  } finally {
    child.kill('SIGKILL')
    await gone
  }
  return found
}

/** Compiled by `npm run build:all`, which the tests begin with. */
function childFile(): string {
  return fileURLToPath(new URL('../../.build/test/runtime/child-hooks.js', import.meta.url))
}

function linesIn({ lines }: Played): readonly string[] {
  return readFileSync(lines, 'utf8').split('\n').slice(0, -1)
}

async function killedAt(
  place: Case['place'],
  effect: Case['effect'],
  verdict: Case['verdict'] = 'allow',
): Promise<Killed> {
  const found = played.find((each) => each.place === place && each.effect === effect && each.verdict === verdict)
  if (!found) throw new Error(`no session is killed at: ${place}, ${effect}, ${verdict}`)
  const { file, session } = found
  const { file: _, ...said } = printed.get(file) as Killed['said'] & { readonly file: string }
  const { events } = await open(file).read(session, 0)
  return { before: before.get(file) ?? [], lines: linesIn(found), said, events }
}

const typesOf = ({ events }: Killed, type: Event['type']) => events.filter((event) => event.type === type)

it('B-HOOK-40: killed while the hook before a call is asked: nothing of it is on disk, so it is asked again, and the call runs once', async () => {
  const killed = await killedAt('in before hook', 'once')
  const [, asked = ''] = killed.before
  expect(killed.before).toEqual(['prompt', expect.stringMatching(/^before /)])
  const key = asked.replace('before ', '')
  expect(killed.lines).toEqual(['prompt', asked, asked, `ran ${key}`, `after ${key}`, 'end'])
  expect(killed.said).toEqual({ status: 'completed', calls: ['ok'] })
  expect(typesOf(killed, 'agent.tool_use')).toHaveLength(1)
})

it('B-HOOK-41: killed between a yes and the call: the yes is its intent, so the hook is not asked again, and a once call is unknown', async () => {
  const killed = await killedAt('intent written', 'once')
  expect(killed.lines).toEqual(['prompt', expect.stringMatching(/^before /), 'end'])
  expect(killed.said).toEqual({ status: 'completed', calls: ['unknown'] })
})

it('B-HOOK-42: killed between a yes and the call: what is safe to repeat runs without the hook being asked again', async () => {
  const killed = await killedAt('intent written', 'read')
  const [, asked = ''] = killed.lines
  const key = asked.replace('before ', '')
  expect(killed.lines).toEqual(['prompt', asked, `ran ${key}`, `after ${key}`, 'end'])
  expect(killed.said).toEqual({ status: 'completed', calls: ['ok'] })
})

it('B-HOOK-43: killed between a no and what follows: the no is the result, so the hook is not asked again and the call stays denied', async () => {
  const killed = await killedAt('denial written', 'once', 'deny')
  expect(killed.lines).toEqual(['prompt', expect.stringMatching(/^before /), 'end'])
  expect(killed.said).toEqual({ status: 'completed', calls: ['denied'] })
  expect(typesOf(killed, 'agent.tool_use')).toEqual([])
})

it('B-HOOK-44: killed while the hook after a call is asked: a once call is unknown and not run again', async () => {
  const killed = await killedAt('in after hook', 'once')
  const [, asked = ''] = killed.lines
  const key = asked.replace('before ', '')
  expect(killed.lines).toEqual(['prompt', asked, `ran ${key}`, `after ${key}`, 'end'])
  expect(killed.said).toEqual({ status: 'completed', calls: ['unknown'] })
})

it('B-HOOK-45: killed while a prompt is looked at: it is looked at again, and its context is there once', async () => {
  const killed = await killedAt('in prompt hook', 'read')
  expect(killed.lines.filter((line) => line === 'prompt')).toHaveLength(2)
  expect(killed.said.status).toBe('completed')
  expect(typesOf(killed, 'note.added')).toMatchObject([{ kind: 'context', text: 'It is Monday.' }])
})

it('B-HOOK-46: the end of a run is told at most once: not again after a crash in its hook, and not at all after one right before', async () => {
  const inside = await killedAt('in end hook', 'read')
  expect(inside.lines.filter((line) => line === 'end')).toHaveLength(1)
  expect(inside.said.status).toBe('completed')
  const before = await killedAt('end written', 'read')
  expect(before.lines.filter((line) => line === 'end')).toHaveLength(0)
  expect(before.said.status).toBe('completed')
})

it('B-HOOK-56: killed while the hook before a request is asked: nothing was sent, and it is asked again', async () => {
  const killed = await killedAt('in step hook', 'read', 'step')
  expect(killed.before).toEqual(['prompt', 'step 1'])
  expect(killed.lines.filter((line) => line.startsWith('step'))).toEqual(['step 1', 'step 1', 'step 2'])
  expect(killed.said).toEqual({ status: 'completed', calls: ['ok'] })
})

it.each(['request written', 'in model'])(
  'B-HOOK-56: killed after its word is on disk (%s): the same request is made, and the hook is not asked again',
  async (place) => {
    const killed = await killedAt(place, 'read', 'step')
    const { lines } = killed
    expect(lines.filter((line) => line.startsWith('step'))).toEqual(['step 1', 'step 2'])
    const asked = lines.filter((line) => line.startsWith('asked'))
    expect(asked).toHaveLength(place === 'in model' ? 3 : 2)
    if (place === 'in model') expect(asked[1]).toBe(asked[0])
    expect(asked[0]).toMatch(/ second all$/)
    expect(asked.at(-1)).toMatch(/ second none$/)
    const started = killed.events.filter((event) => event.type === 'model.started')
    expect(started.map(({ route, tools }) => [route, tools])).toEqual([
      ['second', ['publish']],
      ['second', ['publish']],
      ['second', []],
    ])
    const notes = killed.events.filter((event) => event.type === 'note.added' && event.text.startsWith('It is turn 1.'))
    expect(notes).toHaveLength(1)
    expect(killed.said).toEqual({ status: 'completed', calls: ['ok'] })
  },
)
