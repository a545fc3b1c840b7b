// Rows 17 and 18: files that are more than they seem, and archives that unpack elsewhere.
import { execFileSync } from 'node:child_process'
import { closeSync, constants, linkSync, openSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { Json } from '../../src/kernel/content.ts'
import type { Case, Row } from './case.ts'
import { atFirst, naiveFiles, naiveReader } from './naive.ts'
import { sleep, type World, UNTOUCHED } from './world.ts'

function hardLinked(name: string, tool: string, args: Json): Case {
  return {
    name,
    attack: (world) => {
      linkSync(join(world.outside, 'canary.txt'), join(world.workspace, 'hard.txt'))
      return world.call(world.defended ? world.files() : naiveFiles(world, atFirst), tool, args)
    },
    harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
  }
}

const hung = new WeakSet<World>()

/** The harm is a call that never comes back. */
function hanging(name: string, prepare: (world: World) => void, [tool, args]: readonly [string, Json]): Case {
  return {
    name,
    attack: async (world) => {
      prepare(world)
      const naive = tool === 'read' ? [naiveReader(world)] : naiveFiles(world, atFirst)
      const tools = world.defended ? world.files() : naive
      const call = world.call(tools, tool, args)
      if (!(await world.ends(call))) hung.add(world)
      await release(world)
    },
    harmed: (world) => hung.has(world),
  }
}

function fifo(world: World): void {
  execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', join(world.workspace, 'pipe.jsonl')])
}

/** Releases a reader that waits at the pipe: opens both ends for a moment, then closes them. */
async function release(world: World): Promise<void> {
  if (!world.has('ws/pipe.jsonl')) return
  const end = openSync(join(world.workspace, 'pipe.jsonl'), constants.O_RDWR | constants.O_NONBLOCK)
  await sleep(50)
  closeSync(end)
}

function sparse(world: World): void {
  truncateSync(world.put('ws/sparse.txt', 'x'), 2 ** 40)
}

export const oddFiles: Row = {
  row: 17,
  title: 'hard links, pipes and endless files',
  cases: [
    hardLinked('writes over another name of a file outside', 'write', { path: 'hard.txt', content: 'evil' }),
    hardLinked('appends to another name of a file outside', 'write', {
      path: 'hard.txt',
      content: 'evil',
      append: true,
    }),
    hardLinked('edits another name of a file outside', 'edit', {
      path: 'hard.txt',
      old_string: 'nobody',
      new_string: 'evil',
    }),
    hanging('reads a pipe that nobody writes', fifo, ['read', { path: 'pipe.jsonl' }]),
    hanging('writes to a pipe that nobody reads', fifo, ['write', { path: 'pipe.jsonl', content: 'x' }]),
    hanging('edits a pipe that nobody writes', fifo, [
      'edit',
      { path: 'pipe.jsonl', old_string: 'a', new_string: 'b' },
    ]),
    hanging('searches a pipe that nobody writes', fifo, ['search', { path: 'pipe.jsonl', pattern: 'x' }]),
    hanging('searches rows in a pipe that nobody writes', fifo, ['jsonl_search', { path: 'pipe.jsonl' }]),
    hanging('reads a sparse file of a terabyte', sparse, ['read', { path: 'sparse.txt' }]),
  ],
}

type Entry = { readonly name: string; readonly text?: string; readonly link?: string }

function unpacking(name: string, entries: (world: World) => readonly Entry[], command = 'tar -xPf evil.tar'): Case {
  return {
    name,
    needs: ['bubblewrap'],
    attack: (world) => {
      world.put('ws/evil.tar', tar(entries(world)))
      return world.run(world.bash('files'), command)
    },
    harmed: (world) => !world.intact,
  }
}

export const archives: Row = {
  row: 18,
  title: 'archives that unpack elsewhere',
  cases: [
    unpacking('unpacks a name with ..', () => [{ name: '../ws-evil/canary.txt', text: 'evil' }]),
    unpacking('unpacks an absolute name', (world) => [{ name: `${world.outside}/canary.txt`, text: 'evil' }]),
    unpacking('unpacks a link, and then a file through it', (world) => [
      { name: 'out', link: world.outside },
      { name: 'out/new.txt', text: 'evil' },
    ]),
    unpacking(
      'unpacks as if outside were the folder to unpack in',
      () => [{ name: 'canary.txt', text: 'evil' }],
      'tar -C ../ws-evil -xf evil.tar',
    ),
  ],
}

/** A tar file, entry by entry; the checksum is the only thing about it that is not plain text. */
function tar(entries: readonly Entry[]): Buffer {
  return Buffer.concat([...entries.map(block), Buffer.alloc(1024)])
}

function block({ name, text = '', link = '' }: Entry): Buffer {
  const header = Buffer.alloc(512)
  const octal = (value: number, at: number, width: number): number =>
    header.write(value.toString(8).padStart(width - 1, '0'), at)
  header.write(name, 0)
  octal(0o755, 100, 8)
  octal(process.getuid?.() ?? 0, 108, 8)
  octal(process.getgid?.() ?? 0, 116, 8)
  octal(Buffer.byteLength(text), 124, 12)
  octal(0, 136, 12)
  header.fill(' ', 148, 156)
  header.write(link === '' ? '0' : '2', 156)
  header.write(link, 157)
  header.write('ustar\x0000', 257)
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  )
  const body = Buffer.alloc(Math.ceil(Buffer.byteLength(text) / 512) * 512)
  body.write(text)
  return Buffer.concat([header, body])
}
