// The dialects in which a model without tool calls may write its calls: which markers it has with their readers, and
// how a call is written. The markers are those of markers.ts, so each of them also counts as a leaked call.
import type { CallReader, ReadCall } from './call-reader.ts'
import { readElement, readElements, writeFunction, writeInvoke } from './element.ts'
import { readFence, writeFence } from './fence.ts'
import { type Marker, MARKERS, type ReaderName } from './markers.ts'
import { readTag, writeTag } from './tag.ts'

const READERS: Readonly<Record<ReaderName, CallReader>> = {
  tag: readTag,
  element: readElement,
  block: readElements,
  fence: readFence,
}

/**
 * `xml`: JSON or P-Format in a tag. `invoke`: `<invoke name="…">` with parameters. `function`: `<function=…>` with
 * parameters or JSON. `fenced`: JSON in a code fence of its own kind.
 */
export type TextDialect = 'xml' | 'invoke' | 'function' | 'fenced'

export type DialectRules = {
  readonly readers: ReadonlyMap<string, CallReader>
  readonly write: (call: ReadCall) => string
}

export const DIALECTS: Readonly<Record<TextDialect, DialectRules>> = {
  xml: { readers: readersOf('<tool_call>', '<toolcall>', '<tool_use>', '<function_call>'), write: writeTag },
  invoke: { readers: readersOf('<invoke name=', '<function_calls>', '<minimax:tool_call>'), write: writeInvoke },
  // Models of this format put the element into a tag that is another dialect's own.
  function: {
    readers: new Map([...readersOf('<function=', '<function name='), ['<tool_call>', readElements]]),
    write: writeFunction,
  },
  fenced: { readers: readersOf('```tool_call'), write: writeFence },
}

function readersOf(...markers: readonly Marker[]): ReadonlyMap<string, CallReader> {
  return new Map(
    markers.flatMap((marker) => {
      const name: ReaderName | null = MARKERS[marker]
      return name === null ? [] : [[marker, READERS[name]] as const]
    }),
  )
}
