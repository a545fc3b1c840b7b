// Converts the prompt of an editor to the input of a session. Files that are only linked stay links: the agent reads
// them with its own tools, under its own rules.
import type { ContentBlock } from '@agentclientprotocol/sdk'
import { Fault } from '../kernel/failure.ts'
import type { FilePart, Input } from '../sessions/input.ts'

type PromptPart = { readonly type: 'text'; readonly text: string } | FilePart

const BLOCKS_MAX = 1_000

export function promptInput(blocks: readonly ContentBlock[]): Input {
  if (blocks.length === 0 || blocks.length > BLOCKS_MAX)
    throw new Fault('invalid_input', `A prompt has between 1 and ${BLOCKS_MAX} parts.`)
  const parts = blocks.map(promptPart)
  if (parts.every((part) => part.type === 'text' && part.text.trim() === ''))
    throw new Fault('invalid_input', 'The prompt is empty. Write a message.')
  return parts
}

/** The text of a prompt without files, used as the answer to a question. */
export function answerText(blocks: readonly ContentBlock[]): string {
  return blocks
    .flatMap((block) => (block.type === 'text' ? [block.text] : []))
    .join('\n')
    .trim()
}

function promptPart(block: ContentBlock): PromptPart {
  if (block.type === 'text') return { type: 'text', text: block.text }
  if (block.type === 'image') return { type: 'image', media: block.mimeType, data: block.data }
  if (block.type === 'resource_link') return { type: 'text', text: `[${block.name}](${block.uri})` }
  if (block.type !== 'resource')
    throw new Fault('invalid_input', `A prompt cannot have a part of type ${block.type}. Leave it out.`)
  const { resource } = block
  if ('text' in resource) return { type: 'text', text: fenceResource(resource.uri, resource.text) }
  const media = resource.mimeType ?? 'application/octet-stream'
  return {
    type: media.startsWith('image/') ? 'image' : 'file',
    media,
    data: resource.blob,
    name: fileNameIn(resource.uri),
  }
}

/** The fence has more backticks than the text, so the text cannot close it. */
function fenceResource(uri: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${uri}\n${fence}\n${text}\n${fence}`
}

function fileNameIn(uri: string): string {
  return (uri.split(/[/\\]/).at(-1) || 'file').slice(0, 200)
}
