// Pictures that a person attaches to a message: the path of one in a paste, and its size for the input line.
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { detectMedia } from '../../tools/core/file-part.ts'
import { oneLine } from '../../view/clean.ts'

export const PICTURE = /\.(?:png|jpe?g|gif|webp)$/i

/** The path in a paste that is nothing but the path of a picture, as terminals paste a file that is dropped on them. */
export function pastedPicture(text: string): { readonly path: string; readonly shown: string } | null {
  const said = text.trim()
  if (said.length > 4_096 || said.includes('\n') || !/^(?:file:\/\/)?["']?\//.test(said)) return null
  const bare = said
    .replace(/^file:\/\//, '')
    .replace(/^(["'])(.*)\1$/, '$2')
    .replace(/\\(.)/g, '$1')
  const path = said.startsWith('file://') ? decodeOrSame(bare) : bare
  if (!PICTURE.test(path)) return null
  const stat = statFile('/', path)
  if (stat === null || !isPicture(path)) return null
  return { path, shown: `[${oneLine(basename(path), 80)} · ${sizeText(stat.size)}]` }
}

function decodeOrSame(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function isPicture(path: string): boolean {
  try {
    const file = openSync(path, 'r')
    try {
      const head = Buffer.alloc(16)
      return detectMedia(head.subarray(0, readSync(file, head)))?.startsWith('image/') ?? false
    } finally {
      closeSync(file)
    }
  } catch {
    return false
  }
}

export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** Null: there is no such file. */
export function statFile(folder: string, path: string): { readonly size: number } | null {
  try {
    const stat = statSync(resolve(folder, path))
    return stat.isFile() ? stat : null
  } catch {
    return null
  }
}
