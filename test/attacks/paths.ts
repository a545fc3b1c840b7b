// Rows 13 to 15: paths that climb out, links that lead out, and new files under such links.
import { mkdirSync, symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import { reportGraph } from '../../src/cli/demo/report/report-graph.ts'
import { Harness } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import type { Case, Row } from './case.ts'
import { byPrefix, type Check, ifThere, lexical, naiveFiles, unchecked } from './naive.ts'
import type { World } from './world.ts'

type Try = {
  readonly name: string
  readonly tool: string
  readonly args: Json | ((world: World) => Json)
  readonly check?: Check
  readonly prepare?: (world: World) => void
}

const EVIL = 'evil'

/** What was read must not be the secret; what was written must not be outside. */
function cases(check: Check, tries: readonly Try[]): readonly Case[] {
  return tries.map((one) => ({
    name: one.name,
    attack: (world) => {
      world.put('ws/mine.txt', 'mine\n')
      world.put(`ws-evil/${world.secret}.jsonl`, `{"row":"${world.secret}"}\n`)
      one.prepare?.(world)
      const tools = world.defended ? world.files() : naiveFiles(world, one.check ?? check)
      return world.call(tools, one.tool, typeof one.args === 'function' ? one.args(world) : one.args)
    },
    harmed: (world) => world.leaked || !untouched(world),
  }))
}

function untouched(world: World): boolean {
  return (
    world.text('ws-evil/canary.txt') === 'nobody touched me\n' &&
    !world.has('ws-evil/new.txt') &&
    !world.has('ws-evil/a')
  )
}

const write = (path: string): Json => ({ path, content: EVIL })

export const climbing: Row = {
  row: 13,
  title: 'paths out of the workspace',
  cases: cases(unchecked, [
    { name: 'writes over a file by ..', tool: 'write', args: write('../ws-evil/canary.txt') },
    { name: 'writes over a file by its absolute path', tool: 'write', args: (w) => write(`${w.outside}/canary.txt`) },
    { name: 'climbs out from deep inside', tool: 'write', args: write('a/b/../../../ws-evil/canary.txt') },
    {
      name: 'hides the climb behind dots and double slashes',
      tool: 'write',
      args: write('.//./a//..//../ws-evil/./canary.txt'),
    },
    {
      name: 'makes a new file in a twin by prefix',
      tool: 'write',
      args: (w) => write(`${w.workspace}-evil/new.txt`),
      check: byPrefix,
    },
    {
      name: 'appends to a file in a twin by prefix',
      tool: 'write',
      args: (w) => ({ path: `${w.workspace}-evil/canary.txt`, content: EVIL, append: true }),
      check: byPrefix,
    },
    { name: 'makes new folders outside', tool: 'write', args: write('../ws-evil/a/b/new.txt') },
    {
      name: 'edits a file by ..',
      tool: 'edit',
      args: { path: '../ws-evil/canary.txt', old_string: 'nobody', new_string: EVIL },
    },
    { name: 'reads a file by ..', tool: 'read', args: { path: '../ws-evil/secret.txt' } },
    { name: 'reads a file by its absolute path', tool: 'read', args: (w) => ({ path: `${w.outside}/secret.txt` }) },
    {
      name: 'reads through /proc/self/root',
      tool: 'read',
      args: (w) => ({ path: `/proc/self/root${w.outside}/secret.txt` }),
    },
    {
      name: 'reads through the root of another process',
      tool: 'read',
      args: (w) => ({ path: `/proc/${process.pid}/root${w.outside}/secret.txt` }),
    },
    {
      name: 'writes through /proc/self/root',
      tool: 'write',
      args: (w) => write(`/proc/self/root${w.outside}/canary.txt`),
    },
    { name: 'lists a folder by ..', tool: 'list', args: { path: '../ws-evil' } },
    { name: 'globs in a folder by ..', tool: 'glob', args: { path: '../ws-evil', pattern: '*.jsonl' } },
    { name: 'searches in a folder by ..', tool: 'search', args: { path: '../ws-evil', pattern: 'canary-' } },
    {
      name: 'searches a file by its absolute path',
      tool: 'search',
      args: (w) => ({ path: `${w.outside}/secret.txt`, pattern: 'c' }),
    },
    { name: 'searches rows by a glob that climbs out', tool: 'jsonl_search', args: { path: '../ws-evil/*.jsonl' } },
    { name: 'searches rows by an absolute folder', tool: 'jsonl_search', args: (w) => ({ path: w.outside }) },
    {
      name: 'climbs out under another name of the field',
      tool: 'write',
      args: { filePath: '../ws-evil/canary.txt', content: EVIL },
    },
    {
      name: 'climbs out in a path that is written as a link',
      tool: 'read',
      args: { path: '[../ws-evil/secret.txt](../ws-evil/secret.txt)' },
    },
    { name: 'climbs out inside of an envelope', tool: 'write', args: { arguments: write('../ws-evil/canary.txt') } },
  ]),
}

const link = (name: string, target: (world: World) => string) => (world: World) => {
  mkdirSync(join(world.workspace, name, '..'), { recursive: true })
  symlinkSync(target(world), join(world.workspace, name))
}
const chain =
  (...steps: readonly ((world: World) => void)[]) =>
  (world: World) => {
    for (const step of steps) step(world)
  }
const toFolder = link('out', (w) => w.outside)
const toCanary = link('out.txt', (w) => join(w.outside, 'canary.txt'))
const toSecret = link('out.txt', (w) => join(w.outside, 'secret.txt'))

export const linked: Row = {
  row: 14,
  title: 'links out of the workspace',
  cases: cases(lexical, [
    { name: 'reads a link to a file', tool: 'read', args: { path: 'out.txt' }, prepare: toSecret },
    { name: 'writes over a link to a file', tool: 'write', args: write('out.txt'), prepare: toCanary },
    {
      name: 'appends to a link to a file',
      tool: 'write',
      args: { path: 'out.txt', content: EVIL, append: true },
      prepare: toCanary,
    },
    {
      name: 'edits a link to a file',
      tool: 'edit',
      args: { path: 'out.txt', old_string: 'nobody', new_string: EVIL },
      prepare: toCanary,
    },
    { name: 'reads in a linked folder', tool: 'read', args: { path: 'out/secret.txt' }, prepare: toFolder },
    { name: 'writes in a linked folder', tool: 'write', args: write('out/canary.txt'), prepare: toFolder },
    { name: 'lists a linked folder', tool: 'list', args: { path: 'out' }, prepare: toFolder },
    {
      name: 'searches in a linked folder',
      tool: 'search',
      args: { path: 'out', pattern: 'canary-' },
      prepare: toFolder,
    },
    {
      name: 'searches a workspace with a linked folder in it',
      tool: 'search',
      args: { pattern: 'canary-' },
      prepare: toFolder,
    },
    {
      name: 'globs a workspace with a linked folder in it',
      tool: 'glob',
      args: { pattern: '*.jsonl' },
      prepare: toFolder,
    },
    { name: 'searches rows in a linked folder', tool: 'jsonl_search', args: { path: 'out' }, prepare: toFolder },
    {
      name: 'searches rows of a workspace with a linked folder in it',
      tool: 'jsonl_search',
      args: { path: '.' },
      prepare: toFolder,
    },
    {
      name: 'reads by a chain of links',
      tool: 'read',
      args: { path: 'a/three/secret.txt' },
      prepare: chain(
        toFolder,
        link('two', () => 'out'),
        link('a/three', () => '../two'),
      ),
    },
    {
      name: 'writes by a relative link',
      tool: 'write',
      args: write('a/rel/canary.txt'),
      prepare: link('a/rel', () => '../../ws-evil'),
    },
    {
      name: 'reads by a link to the root',
      tool: 'read',
      args: (w) => ({ path: `slash${w.outside}/secret.txt` }),
      prepare: link('slash', () => '/'),
    },
    {
      name: 'writes by a link to /proc/self/root',
      tool: 'write',
      args: (w) => write(`proc${w.outside}/canary.txt`),
      prepare: link('proc', () => '/proc/self/root'),
    },
    {
      name: 'makes a file by a link that leads nowhere yet',
      tool: 'write',
      args: write('dangling.txt'),
      prepare: link('dangling.txt', (w) => join(w.outside, 'new.txt')),
    },
  ]),
}

/** A report whose root is named from here, and whose place leads out by a link. */
const reported: Case = {
  name: 'has a report written in a linked folder',
  attack: async (world) => {
    toFolder(world)
    if (!world.defended) return world.call(naiveFiles(world, ifThere), 'write', write('out/new.txt'))
    world.put('ws/docs/tea.md', 'Tea is warm and good for you.\n')
    const graphs = [reportGraph({ root: relative(process.cwd(), world.workspace) })]
    const harness = new Harness({ model: world.model([]), graphs })
    world.defer(() => harness.close())
    const input = { topic: 'tea', documents: 'docs', out: 'out/new.txt' }
    const { sessionId, pending } = await harness.run(input, { agent: 'report' })
    const session = harness.session(sessionId)
    for (const each of pending) await session.decide({ ...each, allow: true, by: 'bob' })
    return session.run()
  },
  harmed: (world) => !untouched(world),
}

export const newborn: Row = {
  row: 15,
  title: 'new files under links',
  cases: [
    reported,
    ...cases(ifThere, [
      { name: 'makes a file in a linked folder', tool: 'write', args: write('out/new.txt'), prepare: toFolder },
      {
        name: 'appends to no file yet in a linked folder',
        tool: 'write',
        args: { path: 'out/new.txt', content: EVIL, append: true },
        prepare: toFolder,
      },
      { name: 'makes folders in a linked folder', tool: 'write', args: write('out/a/b/new.txt'), prepare: toFolder },
      {
        name: 'makes a file by a chain of links',
        tool: 'write',
        args: write('two/new.txt'),
        prepare: chain(
          toFolder,
          link('two', () => 'out'),
        ),
      },
      {
        name: 'makes a file by a link deep inside',
        tool: 'write',
        args: write('x/y/out/new.txt'),
        prepare: link('x/y/out', (w) => w.outside),
      },
      {
        name: 'makes a file by a relative link',
        tool: 'write',
        args: write('rel/new.txt'),
        prepare: link('rel', () => '../ws-evil'),
      },
      {
        name: 'makes a file by a link to the root',
        tool: 'write',
        args: (w) => write(`slash${w.outside}/new.txt`),
        prepare: link('slash', () => '/'),
      },
      {
        name: 'makes a file by the absolute path of a linked folder',
        tool: 'write',
        args: (w) => write(`${w.workspace}/out/new.txt`),
        prepare: toFolder,
      },
      {
        name: 'makes folders by a link to the folder above',
        tool: 'write',
        args: write('up/ws-evil/a/new.txt'),
        prepare: link('up', () => '..'),
      },
    ]),
  ],
}
