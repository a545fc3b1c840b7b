// The guard and the disk behind it on a real folder full of links: whatever path is asked for, what is touched is inside a root,
// nothing outside changes, and what is harmless is let through.
import { existsSync, realpathSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import fc from 'fast-check'
import { readBeforeWrite, replaceSeenFile, readFileAt } from '../../src/tools/files/guarded-disk.ts'
import { ToolFailure } from '../../src/tools/core/tool-output.ts'
import {
  type Access,
  deniedFailure,
  type PathGuard,
  createPathGuard,
  locatePath,
  type GuardedPath,
} from '../../src/tools/files/path-guard.ts'
import { judgeCall } from '../../src/tools/policy/policy.ts'
import { toolContext } from '../tools/context.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, type Property, type Target } from './target.ts'
import { CANARY, type Leads, Tree } from './tree.ts'

type Subject = {
  readonly judge: typeof judgeCall
  readonly locate: typeof locatePath
  readonly read: (guarded: PathGuard, place: GuardedPath) => Promise<Buffer>
  readonly write: (guarded: PathGuard, place: GuardedPath, bytes: Buffer) => Promise<void>
}
/** The path begins with the name of a folder in capitals, where an absolute one is wanted: the real ones have no lasting name. */
type Case = { readonly path: string; readonly access: Access; readonly guard: number; readonly touch: boolean }

const real: Subject = {
  judge: judgeCall,
  locate: locatePath,
  read: async (guarded, place) => (await readFileAt(guarded, place)).bytes,
  write: async (guarded, place, bytes) => {
    const seen = await readBeforeWrite(guarded, place)
    await replaceSeenFile({ guarded, place, seen, bytes, after: '', context: toolContext() })
  },
}

const PLAIN = [
  'a',
  'b',
  'file',
  'new',
  'A',
  'ü',
  'u\u0308',
  'a.',
  '...',
  ' ',
  '~',
  '\\',
  '..\\..',
  'b\\c',
  '%2e%2e',
  '-',
  'ws-evil',
  'a\n',
  'hard',
  'scripts',
  'scripts/hooks',
  'scripts/hooks/pre',
  'a/b',
  'a/file',
]
const LINKS = [
  'in deep linkfile abs back self out rel chain chain2 canary canary.txt up top loop loop1',
  'dangling danglingIn danglingDir proc procOut dotgit sibling',
].flatMap((line) => line.split(' '))
/** Every spelling that some file system takes for a name that is never written. */
const GUARDED = [
  '.git',
  '.GIT',
  '.Git',
  '.git.',
  '.git ',
  '.gi\u200ct',
  '\uff0egit',
  '.git::$INDEX_ALLOCATION',
  '.bashrc',
  '.BashRC',
  '.npmrc',
  '.vscode',
  'terret.json',
  '.terret',
  '.mcp.json',
  '.envrc',
  'secret',
  'SECRET',
]
const LONG = 'x'.repeat(300)
const STARTS = [
  '',
  '',
  '',
  './',
  '/',
  'ROOT/',
  'ROOT/',
  'OUTSIDE/',
  'ROOT-evil/',
  'ROOT/../',
  '/proc/self/root',
  '/proc/self/rootROOT/',
  '//',
  '../',
  '../ws/',
  '../ws-evil/',
  '/dev/',
  '/sys/',
]

/** Asked for by chance alone, the few files of the tree would hardly ever be touched. */
const TOUCHED = [
  'hard',
  'self/hard',
  'ROOT/hard',
  'a/file',
  'in/new',
  'deep/file',
  'a/new/new',
  'A/file',
  'scripts/new',
  'b/../hard',
]

function question(tape: Tape): Case {
  // Most cases only ask: to touch the disk costs a hundred times as much.
  const [guard, access, touch] = [tape.below(6), tape.pick<Access>(['read', 'write']), tape.chance(32)]
  if (touch && tape.chance(2)) return { path: tape.pick(TOUCHED), access, guard, touch }
  const start = tape.chance(2) ? tape.pick(STARTS) : tape.pick(['', 'ROOT/'])
  const segments = tape.list(6, () => segment(tape))
  const path =
    start + segments.join(tape.chance(8) ? '//' : '/') + (tape.chance(16) ? tape.pick(['/', '/.', '\0', '\0.txt']) : '')
  return { path, access, guard, touch }
}

function segment(tape: Tape): string {
  const kind = tape.below(16)
  if (kind < 7) return tape.pick(PLAIN)
  if (kind < 11) return tape.pick(LINKS)
  if (kind < 14) return tape.pick(['..', '.', '', '..'])
  return tape.chance(2) ? tape.pick(GUARDED) : tape.pick([LONG, 'n'.repeat(255), 'ü'.repeat(128)])
}

type Rooms = readonly {
  readonly guarded: PathGuard
  readonly read: readonly string[]
  readonly write: readonly string[]
}[]

/** The guards of all cases, and in plain words what each allows. */
function rooms({ root }: Tree): Rooms {
  const [a, A, scripts] = ['a', 'A', 'scripts'].map((name) => join(root, name)) as [string, string, string]
  return [
    { guarded: createPathGuard({ root, protect: ['secret'] }), read: [root], write: [root] },
    { guarded: createPathGuard({ root, protect: ['secret'], write: ['a'] }), read: [root, a], write: [a] },
    {
      guarded: createPathGuard({ root, protect: ['secret'], read: ['a'], write: ['A', 'scripts'] }),
      read: [a],
      write: [A, scripts],
    },
    { guarded: createPathGuard({ root, protect: ['secret'], write: [] }), read: [root], write: [] },
    { guarded: createPathGuard({ root: a, protect: ['secret'] }), read: [a], write: [a] },
    { guarded: createPathGuard({ root, protect: ['secret'], read: [], write: ['.'] }), read: [], write: [root] },
  ]
}

const isIn = (folder: string, path: string): boolean => path === folder || relative(folder, path).split('/')[0] !== '..'

/** What must come of it: a place, `deniedFailure`, or null where file systems differ. */
function expected(tree: Tree, room: Rooms[number], path: string, access: Access): string | null {
  if (path === '' || path.includes('\0')) return 'denied'
  const wanted = resolve(room.guarded.root, path)
  if (['proc', 'sys', 'dev'].includes(wanted.split('/')[1] ?? '')) return 'denied'
  const leads: Leads = tree.leads(wanted)
  if (leads.type === 'odd') return null
  if (leads.type === 'nowhere' || !room[access].some((folder) => isIn(folder, leads.real))) return 'denied'
  return access === 'write' && isGuarded(tree, wanted, leads.real) ? 'denied' : leads.real
}

/** As it was spelled, as it is, and as what git runs: its hooks are a link to the scripts. */
function isGuarded(tree: Tree, wanted: string, path: string): boolean {
  const names = [wanted, path].flatMap((one) => one.split('/'))
  return names.some((name) => GUARDED.includes(name)) || isIn(join(tree.root, 'scripts', 'hooks'), path)
}

class Session {
  readonly #tree = new Tree()
  readonly #rooms = rooms(this.#tree)
  readonly #subject: Subject

  constructor(subject: Subject) {
    this.#subject = subject
  }

  async check(one: Case): Promise<void> {
    const room = this.#rooms[one.guard]
    if (!room) throw new Error(`there is no guard ${one.guard}`)
    const path = one.path.replace('ROOT', this.#tree.root).replace('OUTSIDE', this.#tree.outside)
    const wanted = expected(this.#tree, room, path, one.access)
    const found = await this.#subject.locate(room.guarded, path, one.access).catch((error: unknown) => error)
    if (found instanceof Error) {
      if (!(found instanceof ToolFailure)) throw found
      return hold(
        wanted === 'denied' || wanted === null,
        () => `${wanted} is allowed, and was refused: ${found.message}`,
      )
    }
    const place = found as GuardedPath
    this.#inside(room, place, one.access)
    hold(wanted === null || wanted === place.path, () => `${place.path} instead of ${wanted}`)
    await this.#ruled(room, place, path)
    if (one.touch) await this.#touch(room, place, one.access)
  }

  /** However it was found: with every link resolved it is below a root that allows this. */
  #inside(room: Rooms[number], place: GuardedPath, access: Access): void {
    let there = place.path
    while (!existsSync(there)) there = dirname(there)
    hold(realpathSync(there) === there, () => `${place.path} leads over a link`)
    hold(
      room[access].some((folder) => isIn(folder, place.path)),
      () => `${place.path} is out of bounds`,
    )
    hold(
      join(place.root, ...place.segments) === place.path,
      () => `${place.segments.join('/')} does not lead to ${place.path}`,
    )
  }

  /** Rules on paths hold for where a path leads, whatever links are on the way. */
  async #ruled({ guarded: { root } }: Rooms[number], place: GuardedPath, path: string): Promise<void> {
    if (root !== this.#tree.root) return
    const action = { tool: 'read', args: { path }, root } as const
    const isLet = async (effect: 'allow' | 'deny', approval: 'ask' | 'auto'): Promise<boolean> => {
      const policy = { rules: [{ effect, path: ['a/b', 'a/b/**'] }], base: root } as const
      return (await this.#subject.judge(policy, { ...action, approval })).type === 'allow'
    }
    const isThere = isIn(join(root, 'a', 'b'), place.path)
    if (isThere) hold(!(await isLet('deny', 'auto')), () => `${place.path} is denied, and is let through`)
    else hold(!(await isLet('allow', 'ask')), () => `${place.path} is let through by a rule for another folder`)
  }

  async #touch(room: Rooms[number], place: GuardedPath, access: Access): Promise<void> {
    const back = this.#tree.keep(place.path)
    try {
      if (access === 'read') await this.#read(room.guarded, place)
      else await this.#write(room.guarded, place)
      const damage = this.#tree.damage()
      hold(damage === null, () => damage ?? '')
    } finally {
      back()
    }
  }

  async #read(guarded: PathGuard, place: GuardedPath): Promise<void> {
    const bytes = await this.#subject.read(guarded, place).catch(() => null)
    if (bytes === null) return
    hold(bytes.equals(readFileSync(place.path)), () => `${place.path} has other bytes`)
    const leaked = bytes.toString() === CANARY && place.path !== join(this.#tree.root, 'hard')
    hold(!leaked, () => `${place.path} holds what is outside`)
  }

  async #write(guarded: PathGuard, place: GuardedPath): Promise<void> {
    const bytes = Buffer.from('written by the fuzzer')
    const done = await this.#subject.write(guarded, place, bytes).then(
      () => true,
      () => false,
    )
    const there = done && readFileSync(place.path).equals(bytes)
    hold(done === there, () => `${place.path} was not written`)
  }

  close(): void {
    this.#tree.remove()
  }
}

function open(subject: Subject): () => Property {
  return () => {
    const session = new Session(subject)
    return {
      property: fc.asyncProperty(drawn(question, 32), (one) => session.check(one)),
      close: () => session.close(),
    }
  }
}

/** A guard that looks at the path in another way. */
function careless(of: (guarded: PathGuard, path: string) => string): typeof locatePath {
  return async (guarded, path, access) => {
    const found = of(guarded, path)
    const root = guarded[access].find((folder) => found.startsWith(folder))
    if (path === '' || path.includes('\0') || root === undefined) throw deniedFailure('out of bounds')
    return { root, segments: relative(root, found).split('/'), path: found, shown: path }
  }
}

function deepest(path: string): string {
  for (let there = path; ; there = dirname(there))
    if (existsSync(there)) return join(realpathSync(there), relative(there, path))
}

const planted: Readonly<Record<string, Subject>> = {
  'roots are compared by prefix': { ...real, locate: careless(({ root }, path) => deepest(resolve(root, path))) },
  'rules are asked about a path as it is written': {
    ...real,
    judge: (policy, action) => judgeCall(policy, { ...action, links: [] }),
  },
  'links are not resolved': { ...real, locate: careless(({ root }, path) => resolve(root, path)) },
  'names are protected in one spelling': {
    ...real,
    locate: (guarded, path, access) => {
      const odd = access === 'write' && path.includes('.GIT') && !path.includes('..')
      return odd
        ? careless(({ root }) => resolve(root, path))(guarded, path, access)
        : locatePath(guarded, path, access)
    },
  },
  'a file with a second name is written': {
    ...real,
    write: async (_guarded, { path }, bytes) => writeFileSync(path, bytes),
  },
  'everything is refused': { ...real, locate: () => Promise.reject(deniedFailure('no')) },
}

export const paths: Target = {
  name: 'paths',
  open: open(real),
  planted: Object.entries(planted).map(([name, subject]) => ({ name, open: open(subject) })),
}
