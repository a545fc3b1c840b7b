// Files as an editor has them, for a host inside an editor: unsaved text counts, and changes go through the editor. The
// disk is read first, with all its rules; this file only decides which text counts. It decides nothing about paths.
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import type { Frozen } from '../../kernel/content.ts'
import { deniedFailure, type FileBuffers, type PathGuard, type GuardedPath } from './path-guard.ts'
import { ToolFailure } from '../core/tool-output.ts'

/** A file as it was when read. `unsaved`: an editor has this text, and the disk has another or none. */
export type SeenFile = Frozen<{ bytes: Buffer; hash: string; mode: number; unsaved?: true }>

/** The mode of a file that exists only in the editor. */
const NEW_FILE_MODE = 0o644

/** Returns the file as the editor has it if its text differs, else as it is on disk. */
export async function readInEditor(
  guarded: PathGuard,
  place: GuardedPath,
  { onDisk, writing }: DiskState,
): Promise<SeenFile | null> {
  const { buffers, fileBytesMax } = guarded
  const { shown } = place
  if (buffers === undefined || (onDisk !== null && !isUtf8(onDisk.bytes))) return onDisk
  const text = await editorText(buffers, place, onDisk !== null && writing)
  // Some editors show a missing file as an empty one.
  if (
    text === null ||
    (onDisk === null && text === '') ||
    (onDisk !== null && isSameText(text, onDisk.bytes.toString()))
  )
    return onDisk
  const bytes = Buffer.from(text)
  if (bytes.length > fileBytesMax)
    throw deniedFailure(`"${shown}" has ${bytes.length} bytes; ${fileBytesMax} is the most.`)
  return { bytes, hash: hash('sha256', bytes), mode: onDisk?.mode ?? NEW_FILE_MODE, unsaved: true }
}

type DiskState = { readonly onDisk: SeenFile | null; readonly writing: boolean }

/** If the editor cannot read the file, the disk counts. A file that will be changed must be read through the editor. */
async function editorText(buffers: FileBuffers, { path, shown }: GuardedPath, needed: boolean): Promise<string | null> {
  try {
    return await buffers.read(path)
  } catch (error) {
    if (!needed) return null
    const why = error instanceof Error ? error.message : String(error)
    throw new ToolFailure('Unavailable', `The editor does not show "${shown}", so it is not changed: ${why}`)
  }
}

/** Ignores line ends and a byte order mark: editors keep them apart from the text. */
function isSameText(inEditor: string, onDisk: string): boolean {
  return ignoreLineEnds(inEditor) === ignoreLineEnds(onDisk)
}

function ignoreLineEnds(text: string): string {
  return text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')
}

/** Throws if the editor did not write the file. */
export async function writeInEditor({ buffers }: PathGuard, { path, shown }: GuardedPath, text: string): Promise<void> {
  try {
    await buffers?.write?.(path, text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ToolFailure('Failed', `The editor did not write "${shown}": ${why}`)
  }
}

/** Refuses to write a file with unsaved changes in an editor that takes no writes. */
export function checkSaved({ buffers }: PathGuard, { shown }: GuardedPath, seen: SeenFile | null): void {
  if (!seen?.unsaved || buffers?.write) return
  const text = `"${shown}" has changes in the editor that are not saved, so nothing was written. Ask the user to save it.`
  throw new ToolFailure('Failed', text, { error_type: 'Conflict' })
}
