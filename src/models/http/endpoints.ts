// The known hosts: address, protocol, keys and differences. Data only: a new host is one entry. Bedrock and Vertex sign
// each request and are not listed: adapted-model.ts reaches them through the AI SDK.
import type { Frozen } from '../../kernel/content.ts'
import type { Protocol, Quirks } from '../protocols/protocol.ts'

/** A host of models: its address, the protocol it speaks, and where its key is looked for. */
export type Endpoint = Frozen<{
  /** The name before the colon in `openai:gpt-5.1`. */
  name: string
  /** The protocol of its requests: `messages`, `responses` or `chat`. */
  protocol: Protocol<unknown>['name']
  /** The protocol adds its path. `{NAME}` stands for the value of that environment variable. */
  baseUrl: string
  /** Environment variables that may hold the key; the first one set is used. Empty: a local server without a key. */
  keys: readonly string[]
  /** The header that carries the key; `authorization` carries it as a bearer token. */
  keyHeader: 'authorization' | 'x-api-key' | 'api-key'
  /** How the host differs from its protocol. */
  quirks: Quirks
  /** Headers of every request, beside that of the key. */
  headers: Readonly<Record<string, string>>
  /**
   * How the host reports the tokens that a model takes: in its list of models, or as Ollama does. Absent if it does
   * not.
   */
  windows?: 'models' | 'ollama'
}>

type KnownEndpoint = Pick<Endpoint, 'baseUrl'> & Partial<Omit<Endpoint, 'name' | 'baseUrl'>>

const PLAIN = ['off', 'low', 'medium', 'high'] as const

const entries = {
  openai: {
    protocol: 'responses',
    baseUrl: 'https://api.openai.com/v1',
    keys: ['OPENAI_API_KEY'],
    quirks: {
      serviceTiers: ['auto', 'default', 'flex', 'priority'],
      providerTools: ['web_search', 'code_execution', 'file_search'],
    },
  },
  anthropic: {
    protocol: 'messages',
    baseUrl: 'https://api.anthropic.com',
    keys: ['ANTHROPIC_API_KEY'],
    keyHeader: 'x-api-key',
    quirks: {
      serviceTiers: ['auto', 'standard_only'],
      providerTools: ['web_search', 'web_fetch', 'code_execution'],
    },
  },
  // The model is the name of a deployment. Its v1 API needs no date.
  azure: {
    protocol: 'responses',
    baseUrl: 'https://{AZURE_RESOURCE_NAME}.openai.azure.com/openai/v1',
    keys: ['AZURE_OPENAI_API_KEY', 'AZURE_API_KEY'],
    keyHeader: 'api-key',
  },
  openrouter: {
    windows: 'models',
    baseUrl: 'https://openrouter.ai/api/v1',
    keys: ['OPENROUTER_API_KEY'],
    quirks: { reasoningField: 'reasoning_details', cacheMarks: true, audio: true, idPattern: /^[A-Za-z0-9_-]{1,64}$/ },
  },
  groq: {
    windows: 'models',
    baseUrl: 'https://api.groq.com/openai/v1',
    keys: ['GROQ_API_KEY'],
    quirks: {
      efforts: PLAIN,
      reasoningField: 'reasoning',
      serviceTiers: ['auto', 'on_demand', 'flex', 'performance'],
      lacks: ['strict', 'files'],
    },
  },
  mistral: {
    windows: 'models',
    baseUrl: 'https://api.mistral.ai/v1',
    keys: ['MISTRAL_API_KEY'],
    quirks: {
      outputTokensField: 'max_tokens',
      idPattern: /^[A-Za-z0-9]{9}$/,
      thoughtParts: true,
      seedField: 'random_seed',
      serviceTiers: [],
      lacks: ['stream_usage', 'files', 'reasoning', 'user_after_tool'],
    },
  },
  deepseek: {
    baseUrl: 'https://api.deepseek.com',
    keys: ['DEEPSEEK_API_KEY'],
    quirks: {
      efforts: ['off', 'low', 'medium', 'high', 'xhigh', 'max'],
      outputTokensField: 'max_tokens',
      reasoningField: 'reasoning_content',
      serviceTiers: [],
      lacks: ['strict', 'images', 'files', 'native_output', 'seed', 'parallel'],
    },
  },
  xai: {
    baseUrl: 'https://api.x.ai/v1',
    keys: ['XAI_API_KEY'],
    quirks: { efforts: PLAIN, lacks: ['strict', 'files'] },
  },
  together: {
    windows: 'models',
    baseUrl: 'https://api.together.ai/v1',
    keys: ['TOGETHER_API_KEY'],
    quirks: { efforts: PLAIN, outputTokensField: 'max_tokens', lacks: ['strict', 'files'] },
  },
  fireworks: {
    windows: 'models',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    keys: ['FIREWORKS_API_KEY'],
    quirks: {
      efforts: PLAIN,
      outputTokensField: 'max_tokens',
      reasoningField: 'reasoning_content',
      lacks: ['strict', 'files'],
    },
  },
  cerebras: {
    baseUrl: 'https://api.cerebras.ai/v1',
    keys: ['CEREBRAS_API_KEY'],
    quirks: { efforts: PLAIN, lacks: ['strict', 'images', 'files'] },
  },
  // The models of this host read their own ids, such as `functions.read:0`.
  moonshot: {
    windows: 'models',
    baseUrl: 'https://api.moonshot.ai/v1',
    keys: ['MOONSHOT_API_KEY'],
    quirks: {
      efforts: PLAIN,
      reasoningField: 'reasoning_content',
      idPattern: /^[\w.:-]{1,64}$/,
      serviceTiers: [],
      lacks: ['strict', 'files'],
    },
  },
  alibaba: {
    baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    keys: ['DASHSCOPE_API_KEY'],
    quirks: {
      outputTokensField: 'max_tokens',
      reasoningField: 'reasoning_content',
      lacks: ['strict', 'files', 'reasoning'],
    },
  },
  gemini: {
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    keys: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    quirks: { efforts: ['off', 'minimal', 'low', 'medium', 'high'], audio: true, lacks: ['strict', 'files'] },
  },
  ollama: {
    windows: 'ollama',
    baseUrl: 'http://127.0.0.1:11434/v1',
    quirks: {
      efforts: PLAIN,
      outputTokensField: 'max_tokens',
      reasoningField: 'reasoning',
      serviceTiers: [],
      lacks: ['strict', 'files', 'parallel'],
    },
  },
  llamacpp: {
    baseUrl: 'http://127.0.0.1:8080/v1',
    quirks: {
      efforts: PLAIN,
      outputTokensField: 'max_tokens',
      reasoningField: 'reasoning_content',
      lacks: ['strict', 'files'],
    },
  },
  vllm: {
    windows: 'models',
    baseUrl: 'http://127.0.0.1:8000/v1',
    quirks: { efforts: PLAIN, reasoningField: 'reasoning', lacks: ['strict', 'files'] },
  },
  lmstudio: {
    baseUrl: 'http://127.0.0.1:1234/v1',
    quirks: {
      efforts: PLAIN,
      outputTokensField: 'max_tokens',
      serviceTiers: [],
      lacks: ['strict', 'files', 'parallel'],
    },
  },
} as const satisfies Record<string, KnownEndpoint>

const DEFAULTS = { protocol: 'chat', keys: [], keyHeader: 'authorization', quirks: {}, headers: {} } as const

/** The hosts that `model` knows, by the name that stands before the colon in `openai:gpt-5.1`. */
export const endpoints: Readonly<Record<string, Endpoint>> = Object.fromEntries(
  Object.entries<KnownEndpoint>(entries).map(([name, entry]) => [name, { name, ...DEFAULTS, ...entry }]),
)

/**
 * The address with its variables filled in. `missing` names the first variable that is not set or is not a valid part
 * of a host name.
 */
export function fillAddress(
  baseUrl: string,
  env: Readonly<Record<string, string | undefined>>,
): { readonly url: string; readonly missing: string | null } {
  let missing: string | null = null
  const url = baseUrl.replace(/\{([A-Z_]+)\}/g, (_all, name: string) => {
    const value = env[name]?.trim() ?? ''
    if (!/^[A-Za-z0-9-]{1,63}$/.test(value)) missing ??= name
    return value
  })
  return { url, missing }
}

const SECRET_HEADER = /auth|key|token|secret|cookie/i

/** The secret in a header: its last word, as in `Bearer abc`. Null if the header has none. */
export function secretInHeader(name: string, value: string): string | null {
  return SECRET_HEADER.test(name) ? (value.trim().split(/\s+/).at(-1) ?? '') : null
}
