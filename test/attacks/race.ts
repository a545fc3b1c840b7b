// Row 16: a folder is swapped for a link, again and again, while a tool works in it.
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Json } from '../../src/kernel/content.ts'
import type { Case, Row } from './case.ts'
import { atFirst, naiveFiles } from './naive.ts'
import { type World, UNTOUCHED } from './world.ts'

const FLIPS = 10_000
/** Without the defence it goes on until the harm is done. */
const FLIPS_MAX = 10_000_000
const CALLS_MAX = 6_000
const BATCH = 20

/** Moves `$1` away, puts a link to `$2` there, and moves it back. Removes what was made in its place meanwhile. */
const RACER = `
  const { renameSync, rmSync, symlinkSync, unlinkSync } = require('node:fs')
  const [place, target, flips] = process.argv.slice(1)
  const attempt = (step) => { try { step(); return true } catch { return false } }
  for (let i = 0; i < Number(flips); i++) {
    attempt(() => renameSync(place, place + '.away'))
    attempt(() => symlinkSync(target, place))
    attempt(() => unlinkSync(place))
    if (attempt(() => renameSync(place + '.away', place))) continue
    attempt(() => rmSync(place, { recursive: true, force: true }))
    attempt(() => renameSync(place + '.away', place))
  }`

type Race = {
  readonly place: string
  readonly target: string
  readonly tool: string
  readonly args: (n: number) => Json
}

/** As long as the racer runs, or until the harm is done. */
async function race(world: World, { place, target, tool, args }: Race, harmed: () => boolean): Promise<void> {
  const racer = spawn(
    process.execPath,
    ['-e', RACER, join(world.workspace, place), target, String(world.defended ? FLIPS : FLIPS_MAX)],
    {
      stdio: 'ignore',
    },
  )
  world.defer(() => racer.kill('SIGKILL'))
  let running = true
  racer.once('exit', () => (running = false))
  let calls = 0
  const step = () => {
    if (!running || calls >= CALLS_MAX || harmed()) return 'done'
    calls += BATCH
    return { calls: Array.from({ length: BATCH }, (_, i) => ({ tool, args: args(calls + i) })) }
  }
  const tools = world.defended ? world.files() : naiveFiles(world, atFirst, 1)
  await world.play(tools, step, { limits: { modelRequests: CALLS_MAX, toolRetries: CALLS_MAX } })
}

function racing(name: string, what: (world: World) => Race): Case {
  const harmed = (world: World): boolean => world.leaked || world.text('ws-evil/canary.txt') !== UNTOUCHED
  return {
    name,
    attack: (world) => {
      mkdirSync(join(world.workspace, 'dir'))
      world.put('ws/dir/canary.txt', 'inside 0\n')
      world.put('ws/dir/secret.txt', 'inside\n')
      return race(world, what(world), () => harmed(world))
    },
    harmed,
  }
}

export const races: Row = {
  row: 16,
  title: 'folders swapped for links while in use',
  // Each has a process of its own that never rests.
  width: 1,
  cases: [
    racing('writes in a folder that becomes a link', (world) => ({
      place: 'dir',
      target: world.outside,
      tool: 'write',
      args: (n) => ({ path: 'dir/canary.txt', content: `evil ${n}` }),
    })),
    racing('appends to a file that becomes a link', (world) => ({
      place: 'dir/canary.txt',
      target: join(world.outside, 'canary.txt'),
      tool: 'write',
      args: (n) => ({ path: 'dir/canary.txt', content: `evil ${n}`, append: true }),
    })),
    racing('reads in a folder that becomes a link', (world) => ({
      place: 'dir',
      target: world.outside,
      tool: 'read',
      args: () => ({ path: 'dir/secret.txt' }),
    })),
    racing('reads a file that becomes a link', (world) => ({
      place: 'dir/secret.txt',
      target: join(world.outside, 'secret.txt'),
      tool: 'read',
      args: () => ({ path: 'dir/secret.txt' }),
    })),
  ],
}
