// The recorded streams, as bytes: those of this repository, and those of a folder beside it where there is one. What they say
// is for others to find out.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export type Recording = {
  /** `chat/tool`, or `shared/chat/groq-tool-call` for one that is not committed here. */
  readonly name: string
  readonly protocol: 'messages' | 'responses' | 'chat'
  readonly bytes: Uint8Array
}

const PROTOCOLS = ['messages', 'responses', 'chat'] as const
/** What the folder beside the repository calls them. */
const FOLDERS = { messages: 'anthropic', responses: 'responses', chat: 'chat' } as const
const SUFFIX = '.chunks.txt'

const repository = rootAbove(import.meta.dirname)
const shared = join(repository, '..', 'shared', 'recordings')

/** Built files run one folder deeper than their sources. */
function rootAbove(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : rootAbove(dirname(folder))
}

export const committedStreams: readonly Recording[] = PROTOCOLS.flatMap((protocol) => {
  const folder = join(repository, 'test', 'recordings', protocol)
  return namesIn(folder, '.sse').map((name) => ({
    name: `${protocol}/${name}`,
    protocol,
    bytes: readFileSync(join(folder, `${name}.sse`)),
  }))
})

/** Streams that others recorded. They are not committed; empty where they are not there. */
export const sharedStreams: readonly Recording[] = PROTOCOLS.flatMap((protocol) => {
  const folder = join(shared, FOLDERS[protocol])
  return namesIn(folder, SUFFIX).flatMap((name) => {
    const lines = readFileSync(join(folder, name + SUFFIX), 'utf8').split('\n')
    const answers = answersIn(lines.filter((line) => line.trim() !== ''))
    return answers.map((answer, at) => ({
      name: `shared/${protocol}/${name}${at === 0 ? '' : `#${at + 1}`}`,
      protocol,
      bytes: framed(protocol, answer),
    }))
  })
})

function namesIn(folder: string, suffix: string): readonly string[] {
  const files = existsSync(folder) ? readdirSync(folder).sort() : []
  return files.filter((file) => file.endsWith(suffix)).map((file) => file.slice(0, -suffix.length))
}

/** Some files hold a whole conversation: several answers of the Responses API, one after the other. */
function answersIn(lines: readonly string[]): readonly (readonly string[])[] {
  const answers: string[][] = []
  for (const line of lines) {
    const begins = answers.length === 0 || line.includes('"type":"response.created"')
    if (begins) answers.push([line])
    else answers.at(-1)?.push(line)
  }
  return answers
}

/** One event a line becomes what the provider sent. */
function framed(protocol: Recording['protocol'], lines: readonly string[]): Uint8Array {
  const events = lines.map((line) => `${eventLine(protocol, line)}data: ${line}\n\n`)
  return Buffer.from(events.join('') + (protocol === 'chat' ? 'data: [DONE]\n\n' : ''))
}

function eventLine(protocol: Recording['protocol'], line: string): string {
  return protocol === 'messages' ? `event: ${(JSON.parse(line) as { type: string }).type}\n` : ''
}
