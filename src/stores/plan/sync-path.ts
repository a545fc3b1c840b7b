// Makes sure that a file, or the names in a folder, are on disk after a power loss.
import { closeSync, fsyncSync, openSync } from 'node:fs'

export function syncPath(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** A folder that may not be read, or that a system does not let a program sync, is left to its file system. */
export function syncFolder(folder: string): void {
  try {
    syncPath(folder)
  } catch (error) {
    if (!UNSYNCABLE.includes(error instanceof Error && 'code' in error ? String(error.code) : '')) throw error
  }
}

const UNSYNCABLE = ['EACCES', 'EPERM', 'EISDIR', 'EINVAL', 'ENOTSUP', 'EROFS']
