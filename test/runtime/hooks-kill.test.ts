// Processes killed while a hook is asked, between its verdict and what follows from it, and right after a run ended.
// The script they run is child-hooks.ts.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import type { Event } from '../../src/index.ts'
import { makeFile, open } from '../stores/folder.ts'

const SESSION = 'hooked'

type Killed = {
  /** What every process noted, in order. */
  readonly before: readonly string[]
  readonly lines: readonly string[]
  /** What the last one said of the run. */
  readonly said: { readonly status: string; readonly calls: readonly string[] }
  readonly events: readonly Event[]
}

/** One process is killed at this place, and a second one goes on. */
async function killedAt(
  place: string,
  effect: 'read' | 'once',
  verdict: 'allow' | 'deny' | 'step' = 'allow',
): Promise<Killed> {
  const file = makeFile()
  const noted = join(dirname(file), 'lines.txt')
  const linesNow = (): string[] => (existsSync(noted) ? readFileSync(noted, 'utf8').split('\n').slice(0, -1) : [])
  const start = (where: string) => {
    const child = spawn(process.execPath, [childFile(), file, SESSION, noted, where, effect, verdict])
    onTestFinished(() => void child.kill('SIGKILL'))
    child.stderr.pipe(process.stderr)
    return child
  }
  const first = start(place)
  const [said] = (await once(first.stdout, 'data')) as [Buffer]
  expect(said.toString()).toBe(`${place}\n`)
  const gone = once(first, 'exit')
  first.kill('SIGKILL')
  await gone
  const before = linesNow()
  const second = start('nowhere')
  let answer = ''
  second.stdout.on('data', (data: Buffer) => {
    answer += data.toString()
  })
  await once(second, 'close')
  const { events } = await open(file).read(SESSION, 0)
  return { before, lines: linesNow(), said: JSON.parse(answer) as Killed['said'], events }
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

/** Compiled by `npm run build:all`, which the tests begin with. */
function childFile(): string {
  return fileURLToPath(new URL('../../.build/test/runtime/child-hooks.js', import.meta.url))
}

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
