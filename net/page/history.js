// history.js — conversations, kept in this browser and nowhere else: each under a name of its own in
// localStorage, so that two open pages do not write over each other.
//
// Bounded: most_chats conversations of most_characters together, the oldest leaving first.
const prefix = "weir.chat.";
const most_chats = 50;
const most_characters = 1_000_000;

/**
 * @typedef {{role: "user" | "assistant", text: string, words?: string, failed?: boolean, before?: string,
 *   parts?: import("./parts.js").Part[], step?: number, asks?: object, judged?: {mark: string, words:
 *   string}}} Turn before, step, asks: of an answer under way, for a reload: what the text began with, the
 *   number of the request, and what it asks for beside the messages
 */
/** @typedef {{id: string, at: number, mode: "chat" | "raw", turns: Turn[]}} Chat */

/** @returns {Chat} */
export function new_chat(mode) {
  const id = Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
  return { id, at: Date.now(), mode, turns: [] };
}

/** All of them, the newest first. @returns {Chat[]} */
export function all_chats() {
  return kept()
    .map(({ text }) => JSON.parse(text))
    .sort((a, b) => b.at - a.at);
}

/** @returns {Chat | null} */
export function find_chat(id) {
  return JSON.parse(localStorage.getItem(prefix + id) ?? "null");
}

export function forget_chat(id) {
  localStorage.removeItem(prefix + id);
}

export function forget_all() {
  for (const { name } of kept()) localStorage.removeItem(name);
}

/** Keeps a conversation. Returns whether there was room for it. @param {Chat} chat */
export function keep_chat(chat) {
  chat.at = Date.now();
  const text = JSON.stringify(chat);
  forget_chat(chat.id);
  if (text.length > most_characters) return false;
  make_room(text.length);
  for (;;) {
    try {
      localStorage.setItem(prefix + chat.id, text);
      return true;
    } catch {
      if (!forget_oldest()) return false; // the browser's own limit is less than ours
    }
  }
}

/** The first words of what was asked. */
export function title_of({ turns, mode }) {
  const text = turns[0]?.text.trim() || (mode === "raw" ? "New text" : "New chat");
  return text.length > 60 ? text.slice(0, 60) + "…" : text;
}

function kept() {
  const names = Object.keys(localStorage).filter((name) => name.startsWith(prefix));
  return names.map((name) => ({ name, text: localStorage.getItem(name) }));
}

function make_room(needed) {
  const room = () => {
    const all = kept();
    const used = all.reduce((sum, { text }) => sum + text.length, 0);
    return all.length < most_chats && used + needed <= most_characters;
  };
  while (!room() && forget_oldest());
}

function forget_oldest() {
  const oldest = all_chats().at(-1);
  if (oldest) forget_chat(oldest.id);
  return oldest !== undefined;
}
