// Keeps a folder of local traces within its bounds: the oldest files go first. Only files that are named like a trace are touched,
// and nothing is lost for good: every trace can be made again from the log.
import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Both hold. The newest trace stays, however large. */
export type Keep = { readonly files: number; readonly bytes: number }

const TRACE = /^[0-9a-f]{32}\.jsonl$/

export async function sweep(folder: string, keep: Keep): Promise<void> {
  const names = (await readdir(folder)).filter((name) => TRACE.test(name))
  const found = await Promise.all(names.map((name) => look(join(folder, name))))
  const newest = found.flat().toSorted((a, b) => b.at - a.at)
  let bytes = 0
  for (const [i, { path, size }] of newest.entries()) {
    bytes += size
    if (i > 0 && (i >= keep.files || bytes > keep.bytes)) await rm(path, { force: true })
  }
}

type Found = { readonly path: string; readonly size: number; readonly at: number }

/** Another process may have removed it meanwhile. */
async function look(path: string): Promise<readonly Found[]> {
  try {
    const { size, mtimeMs } = await lstat(path)
    return [{ path, size, at: mtimeMs }]
  } catch {
    return []
  }
}
