// The key that makes a second try the same act: one for each body, for as long as the page that asks is open.
import { useRef } from 'react'
import { newKey } from './api.ts'

export function useActKey(): (body: object) => string {
  const keys = useRef(new Map<string, string>())
  return (body) => {
    const text = JSON.stringify(body)
    const key = keys.current.get(text) ?? newKey()
    keys.current.set(text, key)
    return key
  }
}
