// The access log of `terret serve`: sign-ins and refusals, one line of JSON each, in the data folder. Its size is
// limited: a full file becomes the older one and replaces it.
import { appendFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { AccessEntry } from '../../server/access.ts'
import type { Home } from '../state/cli-home.ts'

const ACCESS_BYTES_MAX = 1024 * 1024

/** Several servers may write to one file: each line is one append. */
export function openAccessLog(
  { folder }: Pick<Home, 'folder'>,
  bytesMax = ACCESS_BYTES_MAX,
): (entry: AccessEntry) => void {
  const file = join(folder, 'access.log')
  return (entry) => {
    const { size } = statSync(file, { throwIfNoEntry: false }) ?? { size: 0 }
    if (size >= bytesMax) renameSync(file, `${file}.1`)
    appendFileSync(file, `${JSON.stringify(entry)}\n`, { mode: 0o600 })
  }
}
