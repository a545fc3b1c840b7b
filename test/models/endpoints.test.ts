// The table of hosts: what every entry must be. That the addresses are right is nothing a test without a network can say.
import { describe, expect, it } from 'vitest'
import { endpoints } from '../../src/models/http/endpoints.ts'

describe('Endpoints', () => {
  it('B-CHAT-28: hosts elsewhere are reached by https with a key from the environment, hosts here without either', () => {
    for (const [name, { name: own, baseUrl, keys }] of Object.entries(endpoints)) {
      const { protocol, hostname } = new URL(baseUrl)
      expect(own).toBe(name)
      expect(baseUrl.endsWith('/')).toBe(false)
      expect(keys.every((key) => /^[A-Z_]+_API_KEY$/.test(key))).toBe(true)
      if (hostname === '127.0.0.1') expect([protocol, keys]).toEqual(['http:', []])
      else expect([protocol, keys.length > 0]).toEqual(['https:', true])
    }
  })

  it('B-CHAT-28: the hosts that are named are there, each with its protocol', () => {
    const named =
      'openai anthropic azure openrouter groq mistral deepseek xai together fireworks cerebras moonshot alibaba gemini'
    expect(Object.keys(endpoints)).toEqual([...named.split(' '), 'ollama', 'llamacpp', 'vllm', 'lmstudio'])
    expect(endpoints['openai']?.protocol).toBe('responses')
    expect(endpoints['anthropic']).toMatchObject({ protocol: 'messages', keyHeader: 'x-api-key' })
    expect(endpoints['azure']).toMatchObject({ protocol: 'responses', keyHeader: 'api-key' })
    expect(endpoints['ollama']).toMatchObject({ protocol: 'chat', keyHeader: 'authorization', keys: [], headers: {} })
  })
})
