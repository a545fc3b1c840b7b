// What a server gave back, as an envelope: structured content as JSON, else its texts; anything else is kept beside the log and
// named. It trusts none of it: lengths are bounded, and characters that hide text are taken out and counted.
import { bound } from '../core/bound.ts'
import type { CallResult } from './link.ts'
import { revealed, visible } from './text.ts'
import { envelopeOf, type Metadata, ModelRetry, type Output, output } from '../core/output.ts'
import type { ToolContext } from '../core/tool.ts'

type Part = CallResult['content'][number]
type Attachment = { readonly type: string; readonly media: string; readonly bytes: number; readonly blob: string }
type Doors = Pick<ToolContext, 'keep' | 'redact'>

const PARTS_MAX = 500
const ERROR_CHARS_MAX = 8_000
const LABEL_CHARS_MAX = 300

export type Origin = { readonly server: string; readonly tool: string }

/** Throws a ModelRetry for what the tool itself calls an error. */
export function envelope(result: CallResult, { server, tool }: Origin, context: Doors): Output {
  const attachments: Attachment[] = []
  const parts = result.content
    .slice(0, PARTS_MAX)
    .map((part) => ({ type: part.type, text: shown(part, context.keep, attachments) }))
  const structured = result.structuredContent
  // The texts beside structured content say the same again, for clients that do not know it.
  const texts = structured === undefined ? parts : parts.filter(({ type }) => type !== 'text')
  const whole = [
    ...(structured === undefined ? [] : [envelopeOf(structured).content]),
    ...texts.map(({ text }) => text),
    ...(result.content.length > PARTS_MAX ? [`[… ${result.content.length - PARTS_MAX} more parts left out …]`] : []),
  ].join('\n')
  const { text, hidden } = revealed(whole)
  const about: Metadata = {
    server,
    tool,
    ...(attachments.length === 0 ? {} : { attachments }),
    ...(hidden === 0 ? {} : { hidden }),
  }
  if (result.isError) {
    const { content, metadata } = bound(text || 'The tool failed and did not say why.', context, ERROR_CHARS_MAX)
    throw new ModelRetry(content, { ...about, ...metadata, error_type: 'MCPToolError' })
  }
  const { content, metadata } = bound(text || '(nothing)', context)
  return output({ content, metadata: { ...metadata, ...about } })
}

function shown(part: Part, keep: Doors['keep'], attachments: Attachment[]): string {
  const attach = (type: string, data: string, media = 'application/octet-stream'): string => {
    const { hash } = keep(data, `${visible(media, 100)};base64`)
    const bytes = Buffer.byteLength(data, 'base64')
    attachments.push({ type, media: visible(media, 100), bytes, blob: hash })
    return `${type}, ${visible(media, 100)}, ${bytes} bytes, kept as blob:${hash}`
  }
  switch (part.type) {
    case 'text':
      return part.text
    case 'image':
    case 'audio':
      return `[${attach(part.type, part.data, part.mimeType)}]`
    case 'resource_link':
      return `[resource ${label(part.name)}: ${label(part.uri)}]`
    case 'resource': {
      const { resource } = part
      if ('text' in resource) return `[resource ${label(resource.uri)}]\n${resource.text}`
      return `[resource ${label(resource.uri)}: ${attach('file', resource.blob, resource.mimeType)}]`
    }
    default:
      return '[a part of a kind that is not known here]'
  }
}

function label(text: string): string {
  return visible(text.replace(/\s+/g, ' '), LABEL_CHARS_MAX)
}
