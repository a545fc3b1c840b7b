// Tells the person in a hidden tab that something waits: a number in the title, a dot on the icon and, if wanted, a
// notification. It contains nothing of a session, since others may see the screen.
import { useEffect, useRef } from 'react'
import { useSettings } from './browser-settings.ts'

const DOT = '<circle cx="25" cy="7" r="7" fill="#b3261e"/>'
const RING = '<circle cx="16" cy="16" r="10" fill="none" stroke="#2f5bd7" stroke-width="4.5"/>'

export function useWaitingNotice(waiting: number): void {
  const { notifies } = useSettings()
  const before = useRef(waiting)
  useEffect(() => {
    document.title = waiting > 0 ? `(${waiting}) Terret` : 'Terret'
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${RING}${waiting > 0 ? DOT : ''}</svg>`
    const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]')
    if (icon) icon.href = waiting > 0 ? `data:image/svg+xml,${encodeURIComponent(svg)}` : '/icon.svg'
    const isMore = waiting > before.current
    before.current = waiting
    if (!isMore || !notifies || !document.hidden || Notification.permission !== 'granted') return
    const note = new Notification('Terret', { body: `${waiting} waiting for you`, tag: 'terret' })
    note.onclick = () => window.focus()
  }, [waiting, notifies])
}
