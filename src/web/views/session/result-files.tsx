// Files and long results that are stored beside the log. The beginning of a long text is read at once, its end on
// request. Content is never rendered as a page: other files are downloaded.
import { useEffect, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import type { BlobRef, Event } from '../../../kernel/index.ts'
import { isObject, parseJson } from '../../../view/untrusted-json.ts'
import { api, sendApiRequest } from '../../data/api.ts'
import { Button } from '../../parts/button.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { toastResult } from '../../shell/toasts.tsx'

const HEAD_BYTES = 16 * 1024
const TAIL_BYTES = 4 * 1024
/** Files up to this size are read whole at once. */
const WHOLE_BYTES = 256 * 1024
/** Longer JSON is shown as text: a tree would block the page. */
const JSON_CHARS = 200_000

/** The text of a result, inline or from its file. */
function Content({ session, content }: { readonly session: string; readonly content: string | BlobRef }) {
  if (typeof content !== 'string') return <LongText session={session} file={content} />
  if (content === '') return <p className="dim">no text</p>
  return <TextOrJson text={content} />
}

type ToolResultEvent = Extract<Event, { type: 'agent.tool_result' }>

/** The result of a call. If a child or a person gave it, the result only refers to the event with the text. */
export function ResultContent({
  session,
  result,
  events,
}: {
  readonly session: string
  readonly result: ToolResultEvent
  /** The events that are searched for the answer first. */
  readonly events: readonly Event[]
}) {
  const { from, content } = result
  if (from === undefined) return <Content session={session} content={content} />
  const answer = events.find(({ seq }) => seq === from)
  if (answer?.type === 'user.custom_tool_result') return <Content session={session} content={answer.content} />
  return <EarlierAnswer session={session} seq={from} />
}

/** An answer outside of the window in memory. */
function EarlierAnswer({ session, seq }: { readonly session: string; readonly seq: number }) {
  const { data, error } = useQuery({
    queryKey: ['event', session, seq],
    queryFn: ({ signal }) => api.events(session, { after: seq - 1, limit: 1 }, signal),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const [event] = data?.events ?? []
  if (event?.type === 'user.custom_tool_result') return <Content session={session} content={event.content} />
  if (!data && !error) return <p className="dim">Reading the answer…</p>
  return <p className="dim">The answer in event {seq} could not be read.</p>
}

/** A link to the full result, if the model was shown only a part of it. */
export function WholeResult({ session, metadata }: { readonly session: string; readonly metadata: unknown }) {
  const [open, setOpen] = useState(false)
  const file = findStoredBlob(metadata)
  if (file === null) return null
  if (open) return <LongText session={session} file={file} />
  return (
    <p className="dim">
      The model was shown a part of {file.bytes.toLocaleString('en')} bytes.{' '}
      <Button size="small" onPress={() => setOpen(true)}>
        Show the whole
      </Button>
    </p>
  )
}

/** The file in which the harness stored the full version of a shortened result. */
function findStoredBlob(metadata: unknown): BlobRef | null {
  if (!isObject(metadata)) return null
  const { compressed, summarized, budgeted } = metadata
  for (const each of [compressed, summarized, budgeted, metadata]) {
    const { blob, bytes } = isObject(each) ? each : {}
    if (typeof blob === 'string' && typeof bytes === 'number')
      return { type: 'blob', hash: blob, bytes, media: 'text/plain' }
  }
  return null
}

function TextOrJson({ text }: { readonly text: string }) {
  const value = /^\s*[[{]/.test(text) && text.length <= JSON_CHARS ? parseJson(text) : undefined
  if (value !== undefined && value !== null && typeof value === 'object') return <JsonTree value={value} open={2} />
  return (
    <div className="result-text">
      <Text as="block" mono text={text} />
    </div>
  )
}

type ReadEnds = { readonly head: string; readonly tail: string; readonly bytes: number }

function LongText({ session, file }: { readonly session: string; readonly file: BlobRef }) {
  const [read, setRead] = useState<ReadEnds | null>(null)
  const [wantsEnd, setWantsEnd] = useState(file.bytes <= WHOLE_BYTES)
  const [trouble, setTrouble] = useState<string | null>(null)
  const isText = /^(text\/|application\/json)/.test(file.media)
  useEffect(() => {
    if (!isText) return
    const stop = new AbortController()
    readEnds(session, file, wantsEnd, stop.signal, setRead).catch((error: unknown) => {
      if (!stop.signal.aborted) setTrouble(error instanceof Error ? error.message : String(error))
    })
    return () => stop.abort()
  }, [session, file.hash, wantsEnd, isText])
  if (!isText) return <FileChip session={session} file={file} />
  const hidden = read === null ? 0 : file.bytes - read.head.length - read.tail.length
  const isWhole = read !== null && read.bytes >= file.bytes && file.bytes <= WHOLE_BYTES
  return (
    <div className="result-text">
      <p className="dim small">
        {file.bytes.toLocaleString('en')} bytes, kept beside the log <FileChip session={session} file={file} />
      </p>
      {trouble === null ? null : (
        <p className="status bad" role="alert">
          <Text text={trouble} />
        </p>
      )}
      {read === null ? null : isWhole ? (
        <TextOrJson text={read.head} />
      ) : (
        <>
          <Text as="block" mono text={read.head} />
          <div className="text-hidden">
            <span>{Math.max(0, hidden).toLocaleString('en')} bytes are not shown</span>
            {read.tail === '' && !wantsEnd ? (
              <Button size="small" onPress={() => setWantsEnd(true)}>
                Show the end
              </Button>
            ) : null}
            {wantsEnd && read.tail === '' ? (
              <span role="status">{Math.floor((100 * read.bytes) / file.bytes)} % read</span>
            ) : null}
          </div>
          <Text as="block" mono text={read.tail} />
        </>
      )}
    </div>
  )
}

/** Keeps only the two ends in memory, whatever the length. */
async function readEnds(
  session: string,
  { hash, bytes: all }: BlobRef,
  wantsEnd: boolean,
  signal: AbortSignal,
  onRead: (read: ReadEnds) => void,
): Promise<void> {
  const path = `sessions/${encodeURIComponent(session)}/blobs/${encodeURIComponent(hash)}`
  const { body } = await sendApiRequest('GET', path, { signal })
  if (body === null) return
  const limit = all <= WHOLE_BYTES ? all : HEAD_BYTES
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let [head, tail] = [new Uint8Array(0), new Uint8Array(0)]
  let [bytes, told] = [0, 0]
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    const missing = limit - head.length
    if (missing > 0) head = joinBytes(head, value.subarray(0, missing))
    bytes += value.length
    tail = joinBytes(tail, value).slice(-TAIL_BYTES)
    if (!wantsEnd && head.length >= limit) {
      void reader.cancel()
      break
    }
    if (performance.now() - told > 200) {
      told = performance.now()
      onRead({ head: decoder.decode(head), tail: '', bytes })
    }
  }
  onRead({ head: decoder.decode(head), tail: wantsEnd && all > limit ? decoder.decode(tail) : '', bytes })
}

function joinBytes(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(a.length + b.length)
  all.set(a)
  all.set(b, a.length)
  return all
}

/** A button that saves a file. */
export function FileChip({ session, file }: { readonly session: string; readonly file: BlobRef }) {
  const name = file.name ?? `${file.hash.slice(0, 12)}.bin`
  return (
    <Button size="small" onPress={() => toastResult(api.blob(session, file.hash).then((blob) => saveFile(blob, name)))}>
      <Text text={`Save ${file.name ?? file.media}`} />
    </Button>
  )
}

/** Saves as an octet stream, whatever the content. */
export function saveFile(blob: Blob, name: string): void {
  const url = URL.createObjectURL(new Blob([blob], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name.replace(/[^\w.-]/g, '_')
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
