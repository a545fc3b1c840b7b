// The idempotency keys of a page: a retry with the same body gets the same key while the page is open.
import { useRef } from 'react'
import { newKey } from './api.ts'

export function useActionKey(): (body: object) => string {
  const keys = useRef(new Map<string, string>())
  return (body) => {
    const text = JSON.stringify(body)
    const key = keys.current.get(text) ?? newKey()
    keys.current.set(text, key)
    return key
  }
}
