// What moves in a page. Without this script every page is complete, and stands still.
"use strict";

const output = document.getElementById("output");
const follow = document.getElementById("follow");
let following = true;

// Text as the server writes it: the server has escaped what others wrote.
const parsed = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
};

// Replaces only what differs, so that focus, selection and scrolling stay where they are.
const update = (element, html) => {
    const next = parsed(html);
    merge(element, next);
};

const merge = (old, next) => {
    const before = [...old.childNodes];
    const after = [...next.childNodes];
    after.forEach((node, index) => {
        const known = before[index];
        if (!known) {
            old.append(node);
        } else if (!known.isEqualNode(node)) {
            if (known.nodeName === node.nodeName && node.nodeType === 1 && known.id === node.id && node.children.length) {
                for (const name of new Set([...known.getAttributeNames(), ...node.getAttributeNames()])) {
                    const value = node.getAttribute(name);
                    if (value === null) known.removeAttribute(name);
                    else if (known.getAttribute(name) !== value) known.setAttribute(name, value);
                }
                merge(known, node);
            } else {
                known.replaceWith(node);
            }
        }
    });
    before.slice(after.length).forEach((node) => node.remove());
};

// Rows that a page holds; the server has the rest.
const MAX_ROWS = 5000;

const addRows = (list, html) => {
    for (const row of [...parsed(html).children]) {
        const known = document.getElementById(row.id);
        if (known) known.replaceWith(row);
        else list.append(row);
    }
    while (list.childElementCount > MAX_ROWS) list.firstElementChild.remove();
    if (following) list.scrollTop = list.scrollHeight;
};

const setFollowing = (on) => {
    following = on;
    follow?.setAttribute("aria-pressed", String(on));
    if (follow) follow.textContent = on ? "Pause" : "Follow";
    if (on && output) output.scrollTop = output.scrollHeight;
};

if (output) output.scrollTop = output.scrollHeight;
if (follow) {
    follow.hidden = false;
    setFollowing(true);
    follow.addEventListener("click", () => setFollowing(!following));
    // One who scrolls up wants to read.
    output.addEventListener("wheel", (event) => event.deltaY < 0 && setFollowing(false), { passive: true });
}

const live = document.querySelector("[data-live]")?.dataset.live;
if (live) {
    const events = new EventSource(live);
    const sign = document.getElementById("live");
    const say = (text) => {
        sign.hidden = false;
        if (sign.textContent !== text) sign.textContent = text;
        sign.classList.toggle("lost", text !== "Live");
    };
    events.onopen = () => say("Live");
    events.onerror = () => say("No connection; trying again");
    events.onmessage = (event) => {
        for (const change of JSON.parse(event.data)) {
            if (change.reload) {
                events.close();
                location.reload();
                return;
            }
            const element = document.getElementById(change.content ?? change.rows);
            if (!element) continue;
            if (change.rows) addRows(element, change.html);
            else update(element, change.html);
        }
    };
    window.addEventListener("pagehide", () => events.close());
}

// Time goes on without the server.
const spell = (seconds) => {
    const pad = (number) => String(number).padStart(2, "0");
    if (seconds < 1) return `${Math.floor(seconds * 1000)} ms`;
    if (seconds < 10) return `${seconds.toFixed(1)} s`;
    const whole = Math.floor(seconds);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
    return `${Math.floor(whole / 3600)} h ${pad(Math.floor(whole / 60) % 60)} min`;
};
setInterval(() => {
    for (const element of document.querySelectorAll("[data-since]")) {
        element.textContent = spell(Math.max(0, Date.now() - element.dataset.since) / 1000);
    }
}, 1000);
