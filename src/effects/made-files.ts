// Pictures and files that a model made: their bytes go beside the log by hash, and the reply holds the references.
import type { Part } from '../kernel/content.ts'
import type { Blob } from '../ports/store.ts'
import { bytesOf, mediaIn } from '../tools/core/file-part.ts'
import { cleanBlob, refOf } from '../engine/wiring.ts'
import type { Redactor } from '../riders/redact/redact.ts'

export type Made = { readonly parts: readonly Part[]; readonly blobs: readonly Blob[] }

/** What cannot be kept is said in words, in its place. */
export function madeFiles(parts: readonly Part[], redactor: Redactor): Made {
  const blobs: Blob[] = []
  const kept = parts.map((part): Part => {
    if (part.type !== 'data') return part
    const { media, data, name } = part
    const bytes = bytesOf({ type: 'file', media, data, ...(name === undefined ? {} : { name }) })
    if (typeof bytes === 'string') return { type: 'text', text: `[left out: ${bytes}]` }
    const blob = cleanBlob(redactor, bytes, mediaIn(bytes) ?? media)
    blobs.push(blob)
    return { ...refOf(blob), ...(name === undefined ? {} : { name }) }
  })
  return { parts: kept, blobs }
}
