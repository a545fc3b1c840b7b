// `terret worktree`: the worktrees of subagents in this folder, and what becomes of them.
import type { Call } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { oneLine } from '../../view/clean.ts'
import { print, printJson } from '../present/print.ts'
import { inPlace, type Place, readPlace } from '../state/place.ts'

export async function worktree(call: Call): Promise<number> {
  const [verb = 'list', id] = call.words
  if (verb === 'list' && id === undefined) return refusing(readPlace((place) => list(call, place)))
  if ((verb !== 'merge' && verb !== 'discard') || id === undefined)
    throw new Refusal(EXIT.usage, 'Usage: terret worktree [list | merge ID | discard ID [--force]]')
  return refusing(inPlace((place) => end(call, place, verb, id)))
}

async function list(call: Call, { store, folder }: Place): Promise<number> {
  const { changesOf, listed, worktreesOf } = await import('../../tools/worktrees/worktree.ts')
  const rows = await Promise.all(
    (await worktreesOf(folder)).map(async (one) => {
      const [card] = await store.list({ folder: one.folder, limit: 1 })
      const { files } = await changesOf(folder, one)
      const { id, branch, path, parent } = one
      return { id, branch, path, parent, session: card?.session ?? null, status: card?.status ?? null, files }
    }),
  )
  for (const row of rows) {
    if (call.is('json')) printJson(row)
    else {
      const changed = row.files.length === 0 ? 'no changes' : `changed: ${listed(row.files)}`
      print(oneLine(`${row.id}  ${row.status ?? 'no session'}  ${row.branch}  ${changed}`, 2_000))
    }
  }
  return EXIT.ok
}

async function end(call: Call, { store, folder }: Place, verb: 'merge' | 'discard', id: string): Promise<number> {
  const { discardedIn, mergedIn } = await import('../../tools/worktrees/tools.ts')
  const merges = verb === 'merge'
  const said = merges ? await mergedIn(store, folder, id) : await discardedIn(store, folder, id, call.is('force'))
  if (call.is('json')) printJson({ id, said })
  else print(oneLine(said, 2_000))
  return EXIT.ok
}

/** What git, or the state of a worktree, does not allow is said in its sentence. */
async function refusing(ended: Promise<number>): Promise<number> {
  const { ToolFailure } = await import('../../tools/core/output.ts')
  return ended.catch((error: unknown) => {
    if (!(error instanceof ToolFailure)) throw error
    const missing = error.metadata['error_type'] === 'WorktreeMissing'
    throw new Refusal(missing ? EXIT.missing : EXIT.usage, oneLine(error.message, 2_000))
  })
}
