// The runtime files on disk. Each is written, whole or not at all, when a session rests. They are never read back: if
// they are deleted, waking the session writes them again.
import { hash } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../kernel/failure.ts'
import type { Store } from '../ports/store.ts'
import { nonEmptyCheck, methodsCheck, requiredCheck, optionsChecker } from '../options.ts'
import { damagedFault } from '../view/session-history.ts'
import type { Hook } from '../runtime/state/hook-events.ts'
import { runtimeFiles } from './render-files.ts'
import { SessionView } from './session-view.ts'

type LogStore = Pick<Store, 'read' | 'card'>

const PAGE = 1_000
/** How many sessions stay in memory, so that a long log is not folded anew at every rest. */
const VIEWS_KEPT = 32

type RuntimeFilesOptions = { readonly store: LogStore; readonly dir: string }
const checkOptions = optionsChecker<RuntimeFilesOptions>('runtimeFilesHook', {
  store: requiredCheck(methodsCheck('give the store of the harness', 'read', 'card')),
  dir: requiredCheck(nonEmptyCheck),
})

/** Writes the three files of a session into its folder below `dir`, and returns the folder. */
export function writeRuntimeFiles(store: LogStore, session: string, dir: string): Promise<string> {
  return new RuntimeFilesFolder(store, dir).write(session)
}

/** A hook that writes them each time a session rests. */
export function runtimeFilesHook(options: RuntimeFilesOptions): Hook {
  checkOptions(options)
  const { store, dir } = options
  return filesHook(new RuntimeFilesFolder(store, dir))
}

export function filesHook(folder: RuntimeFilesFolder): Hook {
  return { type: 'session_rest', run: async ({ session }) => void (await folder.write(session)) }
}

/** The folder of all sessions' runtime files. */
export class RuntimeFilesFolder {
  readonly #store: LogStore
  readonly #dir: string
  readonly #views: SessionViews

  constructor(store: LogStore, dir: string, views: SessionViews = new SessionViews(store)) {
    this.#store = store
    this.#dir = dir
    this.#views = views
  }

  /** Of two writers at once, here or in two processes, the files of the longer log remain. */
  async write(session: string): Promise<string> {
    const folder = runtimeFolder(session, this.#dir)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (;;) {
      const view = await this.#views.of(session)
      const { seq } = view.state
      for (const [name, text] of Object.entries(runtimeFiles(view))) await replaceWhole(join(folder, name), text)
      // Another process may have read more of the log, and this one may have replaced its newer files.
      const { seq: now = seq } = (await this.#store.card(session)) ?? {}
      if (now <= seq) return folder
    }
  }
}

/** The views of the sessions used last. Each continues reading where it stopped. */
export class SessionViews {
  readonly #store: Pick<Store, 'read'>
  readonly #views = new Map<string, SessionView>()

  constructor(store: Pick<Store, 'read'>) {
    this.#store = store
  }

  async of(session: string): Promise<SessionView> {
    const view = this.#views.get(session) ?? new SessionView(session)
    // Removed while it grows, so that a view that failed halfway is not kept.
    this.#views.delete(session)
    for (;;) {
      const page = await this.#store.read(session, view.state.seq, PAGE)
      for (const event of page.events) view.take(event)
      if (page.damaged) throw damagedFault(session, page.damaged)
      if (page.events.length < PAGE) break
    }
    if (view.state.seq === 0) throw new Fault('session_missing', `There is no session ${session}.`)
    this.#views.set(session, view)
    if (this.#views.size > VIEWS_KEPT) this.#views.delete(this.#views.keys().next().value ?? '')
    return view
  }
}

/** The folder of a session's files. */
export function runtimeFolder(session: string, dir: string): string {
  return join(dir, folderName(session))
}

const NAME_BYTES_MAX = 200

/** A session may have any name. Its folder name is unique and stays below `dir`. */
export function folderName(session: string): string {
  const name = encodeURIComponent(Buffer.from(session).toString()).replace(/^\.+/, (dots) => '%2E'.repeat(dots.length))
  return name.length <= NAME_BYTES_MAX ? name : `${name.slice(0, 100)}-${hash('sha256', session)}`
}

let filesWritten = 0

async function replaceWhole(path: string, text: string): Promise<void> {
  // An unchanged file is not written, so a wake without work leaves no trace here either.
  if ((await readFile(path, 'utf8').catch(() => null)) === text) return
  filesWritten += 1
  const beside = `${path}.${process.pid}-${filesWritten}.tmp`
  try {
    await writeFile(beside, text, { mode: 0o600 })
    await rename(beside, path)
  } catch (error) {
    await rm(beside, { force: true }).catch(() => {})
    throw error
  }
}
