// What the server scenarios of the official conformance suite want to find, by the names and shapes that its own source asks for:
// tools, resources and prompts, registered beside ours on the very server that our wiring serves.
/* oxlint-disable typescript/no-deprecated -- the suite speaks the older revision, which asks its client in this way */
import { setTimeout as sleep } from 'node:timers/promises'
import { completable, type McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { z } from 'zod'

/** One red pixel, and one silent moment. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFAAH/q842iQAAAABJRU5ErkJggg=='
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA='
const WAIT_MS = 50

const said = (text: string) => ({ content: [{ type: 'text' as const, text }] })
const image = { type: 'image', data: PNG, mimeType: 'image/png' } as const
const of = (description: string) => ({ description, inputSchema: z.object({}) })

export function fixtures(server: McpServer): void {
  server.server.registerCapabilities({ logging: {}, resources: { subscribe: true } })
  plainTools(server)
  talkingTools(server)
  askingTools(server)
  resources(server)
  prompts(server)
}

function plainTools(server: McpServer): void {
  server.registerTool('test_simple_text', of('Says a text'), () => said('This is a simple text response for testing.'))
  server.registerTool('test_image_content', of('Shows a picture'), () => ({ content: [image] }))
  server.registerTool('test_audio_content', of('Plays a sound'), () => ({
    content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
  }))
  server.registerTool('test_embedded_resource', of('Gives a resource'), () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }))
  server.registerTool('test_multiple_content_types', of('Gives several things'), () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }))
  server.registerTool('test_error_handling', of('Fails'), () => {
    throw new Error('This tool intentionally returns an error for testing')
  })
}

function talkingTools(server: McpServer): void {
  server.registerTool('test_tool_with_logging', of('Logs while it works'), async (_args, { mcpReq }) => {
    await mcpReq.log('info', 'Tool execution started')
    await sleep(WAIT_MS)
    await mcpReq.log('info', 'Tool processing data')
    await sleep(WAIT_MS)
    await mcpReq.log('info', 'Tool execution completed')
    return said('Logged.')
  })
  server.registerTool('test_tool_with_progress', of('Says how far it is'), async (_args, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } })
      await sleep(WAIT_MS)
    }
    return said('Done.')
  })
}

const DEFAULTS = {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
} as const
const THREE = ['option1', 'option2', 'option3']
const TITLED = [
  { const: 'value1', title: 'First Option' },
  { const: 'value2', title: 'Second Option' },
  { const: 'value3', title: 'Third Option' },
]
const ENUMS = {
  untitledSingle: { type: 'string', enum: THREE },
  titledSingle: { type: 'string', oneOf: TITLED },
  legacyEnum: {
    type: 'string',
    enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three'],
  },
  untitledMulti: { type: 'array', items: { type: 'string', enum: THREE } },
  titledMulti: { type: 'array', items: { anyOf: TITLED } },
} as const

function askingTools(server: McpServer): void {
  const prompted = { description: 'Asks the client for a sample', inputSchema: z.object({ prompt: z.string() }) }
  server.registerTool('test_sampling', prompted, async ({ prompt }, { mcpReq }) => {
    const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: prompt } }]
    const { content } = await mcpReq.requestSampling({ messages, maxTokens: 100 })
    return said(`LLM response: ${JSON.stringify(content)}`)
  })
  const asked = { description: 'Asks the person', inputSchema: z.object({ message: z.string() }) }
  server.registerTool('test_elicitation', asked, async ({ message }, { mcpReq }) => {
    const properties = {
      username: { type: 'string', description: "User's response" },
      email: { type: 'string', description: "User's email address" },
    } as const
    const requestedSchema = { type: 'object' as const, properties, required: ['username', 'email'] }
    const { action, content } = await mcpReq.elicitInput({ mode: 'form', message, requestedSchema })
    return said(`User response: <action: ${action}, content: ${JSON.stringify(content)}>`)
  })
  for (const [name, properties] of [
    ['test_elicitation_sep1034_defaults', DEFAULTS],
    ['test_elicitation_sep1330_enums', ENUMS],
  ] as const) {
    server.registerTool(name, of('Asks the person by a form'), async (_args, { mcpReq }) => {
      const requestedSchema = { type: 'object' as const, properties: structuredClone(properties) as typeof DEFAULTS }
      const { action, content } = await mcpReq.elicitInput({
        mode: 'form',
        message: 'Please fill it in.',
        requestedSchema,
      })
      return said(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`)
    })
  }
}

function resources(server: McpServer): void {
  const text = { uri: 'test://static-text', mimeType: 'text/plain' }
  server.registerResource('static-text', text.uri, { description: 'A text', mimeType: text.mimeType }, () => ({
    contents: [{ ...text, text: 'This is the content of the static text resource.' }],
  }))
  const binary = { uri: 'test://static-binary', mimeType: 'image/png' }
  server.registerResource('static-binary', binary.uri, { description: 'Bytes', mimeType: binary.mimeType }, () => ({
    contents: [{ ...binary, blob: PNG }],
  }))
  const watched = { uri: 'test://watched-resource', mimeType: 'text/plain' }
  server.registerResource('watched', watched.uri, { description: 'Watched', mimeType: watched.mimeType }, () => ({
    contents: [{ ...watched, text: 'Watched.' }],
  }))
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined })
  server.registerResource(
    'template',
    template,
    { description: 'By id', mimeType: 'application/json' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
        },
      ],
    }),
  )
  const subscribed = new Set<string>()
  server.server.setRequestHandler('resources/subscribe', ({ params }) => {
    subscribed.add(params.uri)
    return {}
  })
  server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    subscribed.delete(params.uri)
    return {}
  })
}

function prompts(server: McpServer): void {
  const user = (content: object) => ({ role: 'user', content }) as never
  server.registerPrompt('test_simple_prompt', { description: 'A plain prompt' }, () => ({
    messages: [user({ type: 'text', text: 'This is a simple prompt for testing.' })],
  }))
  const cities = (value: string | undefined) =>
    ['paris', 'park', 'party'].filter((word) => word.startsWith(value ?? ''))
  const argsSchema = z.object({ arg1: completable(z.string(), cities), arg2: z.string() })
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'With arguments', argsSchema },
    ({ arg1, arg2 }) => ({
      messages: [user({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` })],
    }),
  )
  const embedded = z.object({ resourceUri: z.string() })
  const config = { description: 'With a resource', argsSchema: embedded }
  server.registerPrompt('test_prompt_with_embedded_resource', config, ({ resourceUri }) => ({
    messages: [
      user({
        type: 'resource',
        resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
      }),
      user({ type: 'text', text: 'Please process the embedded resource above.' }),
    ],
  }))
  server.registerPrompt('test_prompt_with_image', { description: 'With a picture' }, () => ({
    messages: [user(image), user({ type: 'text', text: 'Please analyze the image above.' })],
  }))
}
