// The runtime files on disk: written when a session rests, each whole or not at all. They are not read back: delete them, wake
// the session, and they are there again.
import { hash } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../kernel/failure.ts'
import type { Store } from '../ports/store.ts'
import { filled, having, needed, optionsOf } from '../options.ts'
import { damaged } from '../view/history.ts'
import type { Hook } from '../riders/hooks/hooks.ts'
import { runtimeFiles } from './render.ts'
import { View } from './view.ts'

type Log = Pick<Store, 'read' | 'card'>

const PAGE = 1_000
/** How many sessions are kept in hand, so that a long log is not folded anew at every rest. */
const VIEWS_KEPT = 32

type FilesOptions = { readonly store: Log; readonly dir: string }
const checkOptions = optionsOf<FilesOptions>('runtimeFilesHook', {
  store: needed(having('give the store of the harness', 'read', 'card')),
  dir: needed(filled),
})

/** Writes the three files of a session into its folder below `dir`, and returns the folder. */
export function writeRuntimeFiles(store: Log, session: string, dir: string): Promise<string> {
  return new Folder(store, dir).write(session)
}

/** A hook that writes them each time a session rests. */
export function runtimeFilesHook(options: FilesOptions): Hook {
  checkOptions(options)
  const { store, dir } = options
  return filesHook(new Folder(store, dir))
}

export function filesHook(folder: Folder): Hook {
  return { type: 'session_rest', run: async ({ session }) => void (await folder.write(session)) }
}

/** The folder of all sessions' runtime files. */
export class Folder {
  readonly #store: Log
  readonly #dir: string
  readonly #views: Views

  constructor(store: Log, dir: string, views: Views = new Views(store)) {
    this.#store = store
    this.#dir = dir
    this.#views = views
  }

  /** Two at once, here or in two processes, end with the files of the longer log. */
  async write(session: string): Promise<string> {
    const folder = runtimeFolder(session, this.#dir)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (;;) {
      const view = await this.#views.of(session)
      const { seq } = view.state
      for (const [name, text] of Object.entries(runtimeFiles(view))) await replace(join(folder, name), text)
      // Another process may have gone on, and its files may be the ones that were just replaced.
      const { seq: now = seq } = (await this.#store.card(session)) ?? {}
      if (now <= seq) return folder
    }
  }
}

/** The views of the sessions that were looked at last, each read on from where it was. */
export class Views {
  readonly #store: Pick<Store, 'read'>
  readonly #views = new Map<string, View>()

  constructor(store: Pick<Store, 'read'>) {
    this.#store = store
  }

  async of(session: string): Promise<View> {
    const view = this.#views.get(session) ?? new View(session)
    // Taken out while it grows: one that broke halfway is not kept.
    this.#views.delete(session)
    for (;;) {
      const page = await this.#store.read(session, view.state.seq, PAGE)
      for (const event of page.events) view.take(event)
      if (page.damaged) throw damaged(session, page.damaged)
      if (page.events.length < PAGE) break
    }
    if (view.state.seq === 0) throw new Fault('session_missing', `There is no session ${session}.`)
    this.#views.set(session, view)
    if (this.#views.size > VIEWS_KEPT) this.#views.delete(this.#views.keys().next().value ?? '')
    return view
  }
}

/** Where the files of a session are. */
export function runtimeFolder(session: string, dir: string): string {
  return join(dir, folderName(session))
}

const NAME_BYTES_MAX = 200

/** A session may have any name. As a folder it has one of its own, below `dir` and nowhere else. */
export function folderName(session: string): string {
  const name = encodeURIComponent(Buffer.from(session).toString()).replace(/^\.+/, (dots) => '%2E'.repeat(dots.length))
  return name.length <= NAME_BYTES_MAX ? name : `${name.slice(0, 100)}-${hash('sha256', session)}`
}

let written = 0

async function replace(path: string, text: string): Promise<void> {
  // What is right already is left alone: a wake that finds nothing to do leaves no trace here either.
  if ((await readFile(path, 'utf8').catch(() => null)) === text) return
  written += 1
  const beside = `${path}.${process.pid}-${written}.tmp`
  try {
    await writeFile(beside, text, { mode: 0o600 })
    await rename(beside, path)
  } catch (error) {
    await rm(beside, { force: true }).catch(() => {})
    throw error
  }
}
