// Content that is stored beside the log: how it is made, cleaned of secrets, and put back into messages for the model.
import type { Blob, Store } from '../../ports/store.ts'
import { hash } from 'node:crypto'
import type { Redactor } from '../redact/redactor.ts'
import type { BlobRef, Part } from '../../kernel/content.ts'
import { type Message, bothEnds } from '../../kernel/transcript.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export function textBlob(text: string, media: string): Blob {
  return bytesBlob(encoder.encode(text), media)
}

export function bytesBlob(data: Uint8Array, media: string): Blob {
  return { hash: hash('sha256', data), media, data }
}

/** Replacing secrets in a text takes seconds for each MB. In a longer file they are only searched for. */
const REDACTED_BYTES_MAX = 1024 * 1024

/**
 * The content that a tool stores, without known secrets. A file that holds one is not stored, since bytes in it cannot
 * be replaced.
 */
export function cleanBlob(redactor: Redactor, data: string | Uint8Array, media: string): Blob {
  if (typeof data === 'string') return textBlob(redactor.text(data), media)
  if (redactor.idle) return bytesBlob(data, media)
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
  if (media.startsWith('text/') && bytes.length <= REDACTED_BYTES_MAX)
    return textBlob(redactor.text(bytes.toString()), media)
  const secret = redactor.inBytes(bytes)
  if (secret === null) return bytesBlob(data, media)
  return textBlob(
    `[this file (${media}, ${data.length} bytes) held the secret ${secret} and was not kept]`,
    'text/plain',
  )
}

export function blobRefOf({ hash: hashed, media, data }: Blob): BlobRef {
  return { type: 'blob', hash: hashed, bytes: data.length, media }
}

/** The text of a blob; null when the store has none. */
export async function readTextBlob(store: Pick<Store, 'blob'>, hashed: string): Promise<string | null> {
  const blob = await store.blob(hashed)
  return blob ? decoder.decode(blob.data) : null
}

const MISSING_TEXT = '[this content is missing from the store]'

/** Puts content from beside the log back into messages for the model: text as text, everything else as data. */
export function readBlobs(
  store: Store,
  messages: readonly Message[],
  placeOf: (message: Message) => number,
): Promise<readonly Message[]> {
  return Promise.all(
    joinReports(messages, placeOf).map(async (message): Promise<Message> => {
      if (message.role === 'tool') {
        const { content, parts } = message
        if (typeof content === 'string' && parts === undefined) return message
        const found =
          typeof content === 'string' ? content : ((await readTextBlob(store, content.hash)) ?? MISSING_TEXT)
        const { fits } = message
        const text = fits && found.length > fits.chars ? bothEnds(found, fits.chars, fits.token) : found
        return { ...message, content: text, ...(parts ? { parts: await readPartBlobs(store, parts) } : {}) }
      }
      if (!message.parts.some((part) => part.type === 'blob')) return message
      return { ...message, parts: await readPartBlobs(store, message.parts) }
    }),
  )
}

/** Reports of children that one request shows for the first time become one message. */
function joinReports(messages: readonly Message[], placeOf: (message: Message) => number): readonly Message[] {
  const whole: Message[] = []
  let open = 0
  for (const message of messages) {
    const last = whole.at(-1)
    const place = message.role === 'user' && message.report !== undefined ? placeOf(message) : 0
    if (place > 0 && place === open && last?.role === 'user' && message.role === 'user')
      whole[whole.length - 1] = { ...last, parts: [...last.parts, ...message.parts] }
    else whole.push(message)
    open = place
  }
  return whole
}

function readPartBlobs(store: Store, parts: readonly Part[]): Promise<readonly Part[]> {
  return Promise.all(parts.map((part) => (part.type === 'blob' ? readPartBlob(store, part) : Promise.resolve(part))))
}

/** A text file becomes text, with its name. */
function wrapNamedFile(name: string | undefined, text: string): string {
  return name === undefined ? text : `<file name=${JSON.stringify(name)}>\n${text}\n</file>`
}

async function readPartBlob(store: Store, { hash: hashed, media, name }: BlobRef): Promise<Part> {
  const blob = await store.blob(hashed)
  if (!blob) return { type: 'text', text: MISSING_TEXT }
  if (media.startsWith('text/')) return { type: 'text', text: wrapNamedFile(name, decoder.decode(blob.data)) }
  const data = Buffer.from(blob.data).toString('base64')
  return { type: 'data', media, data, ...(name === undefined ? {} : { name }) }
}
