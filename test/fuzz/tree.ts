// A folder on the real disk to fuzz paths in: a root with links of every shape, a twin of it by prefix with a canary in it,
// and where a path in it leads, found out one segment at a time. Not the guard: it shares no line with it.
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export const CANARY = 'nobody touched me\n'
/** More than any kernel follows. */
const LINKS_MAX = 40

/** Where a path leads: `real` with every link resolved, or nowhere. `odd` for what differs from one file system to another. */
export type Leads =
  | { readonly type: 'to'; readonly real: string }
  | { readonly type: 'nowhere' }
  | { readonly type: 'odd' }

export class Tree {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-fuzz-')))
  readonly root = join(this.folder, 'ws')
  readonly outside = join(this.folder, 'ws-evil')
  readonly #canary = join(this.outside, 'canary.txt')

  constructor() {
    for (const name of ['a/b', 'ü', 'u\u0308', 'A', 'a.', '.git', 'scripts/hooks'])
      mkdirSync(join(this.root, name), { recursive: true })
    mkdirSync(this.outside)
    writeFileSync(this.#canary, CANARY)
    for (const name of [
      'a/b/file',
      'a/file',
      'ü/file',
      'u\u0308/file',
      'A/file',
      'a./file',
      'b\\c',
      '.git/HEAD',
      'scripts/hooks/pre',
    ]) {
      writeFileSync(join(this.root, name), name)
    }
    linkSync(this.#canary, join(this.root, 'hard'))
    for (const [name, target] of Object.entries(this.#links())) symlinkSync(target, join(this.root, name))
  }

  #links(): Readonly<Record<string, string>> {
    const { root, outside } = this
    return {
      in: 'a',
      deep: 'a/b',
      linkfile: 'a/b/file',
      abs: join(root, 'a'),
      back: '../ws/a',
      self: '.',
      out: outside,
      rel: '../ws-evil',
      chain: 'out',
      chain2: 'chain',
      canary: join(outside, 'canary.txt'),
      up: '..',
      top: '/',
      loop: 'loop',
      loop1: 'loop2',
      loop2: 'loop1',
      dangling: join(outside, 'new.txt'),
      danglingIn: 'a/none',
      danglingDir: join(outside, 'later'),
      proc: '/proc/self/root',
      procOut: `/proc/self/root${outside}`,
      dotgit: '.git',
      '.git/hooks': '../scripts/hooks',
      'a/chain': '../out',
      'a/sibling': '../A',
    }
  }

  /** By hand: each segment is looked at, each link is put in the place of its name. What is missing cannot be a link. */
  leads(wanted: string): Leads {
    if (Buffer.byteLength(wanted) > 3_000 || wanted.split('/').some((segment) => Buffer.byteLength(segment) > 255))
      return { type: 'odd' }
    const open = wanted.split('/').filter((segment) => segment !== '')
    let real = ''
    /** How many of the open segments were not asked for, but came from a link. */
    let linked = 0
    for (let links = 0; open.length > 0; ) {
      const segment = open.shift() ?? ''
      const fromLink = linked > 0
      linked = Math.max(0, linked - 1)
      if (segment === '..') real = dirname(real || '/').replace(/^\/$/, '')
      if (segment === '..' || segment === '.') continue
      const stat = lstatSync(`${real}/${segment}`, { throwIfNoEntry: false })
      if (!stat) return fromLink ? { type: 'nowhere' } : { type: 'to', real: [real, segment, ...open].join('/') }
      if (!stat.isSymbolicLink()) {
        real = `${real}/${segment}`
        if (!stat.isDirectory()) return { type: 'to', real: [real, ...open].join('/') }
        continue
      }
      links += 1
      if (links > LINKS_MAX) return { type: 'nowhere' }
      const target = readlinkSync(`${real}/${segment}`)
      const steps = target.split('/').filter((step) => step !== '')
      if (target.startsWith('/')) real = ''
      open.unshift(...steps)
      linked += steps.length
    }
    return { type: 'to', real: real || '/' }
  }

  /** What is wrong outside the root; null if nothing is. */
  damage(): string | null {
    if (readFileSync(this.#canary, 'utf8') !== CANARY) return 'the canary outside was changed'
    if (readdirSync(this.outside).join() !== 'canary.txt')
      return `outside there is now ${readdirSync(this.outside).join(', ')}`
    const beside = readdirSync(this.folder).toSorted().join()
    return beside === 'ws,ws-evil' ? null : `beside the root there is now ${beside}`
  }

  /** Remembers what is at a place, and puts it back. */
  keep(path: string): () => void {
    if (existsSync(path)) {
      const bytes = lstatSync(path).isFile() ? readFileSync(path) : null
      return () => {
        if (bytes && !readFileSync(path).equals(bytes)) writeFileSync(path, bytes)
      }
    }
    let first = path
    while (!existsSync(dirname(first))) first = dirname(first)
    return () => {
      if (existsSync(first)) rmSync(first, { recursive: true })
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
