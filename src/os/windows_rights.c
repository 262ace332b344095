/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a file is, and who may write it. A list of rights (DACL) that Windows itself makes in a user's profile names the
 * user, the system and the administrators; those are believed, since the last two can do anything anyhow. Whoever else may
 * write makes a file one that others could have written.
 */
#include "os/windows_private.h"

#include <aclapi.h>
#include <stdlib.h>

/* Rights that let one change a file, or what is in a folder, or who may. */
#define WRITES                                                                                                         \
    (FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_WRITE_EA | FILE_DELETE_CHILD | WRITE_DAC | WRITE_OWNER | DELETE |       \
     GENERIC_WRITE | GENERIC_ALL)

typedef struct user_sid {
    TOKEN_USER token;
    unsigned char room[SECURITY_MAX_SID_SIZE]; /* the token's SID lies behind it */
} user_sid;

static bool find_user(user_sid *user) {
    HANDLE token;
    DWORD used;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) return false;
    const bool found = GetTokenInformation(token, TokenUser, user, sizeof *user, &used);
    CloseHandle(token);
    return found;
}

static bool is_trusted(PSID sid, PSID user) {
    return EqualSid(sid, user) || IsWellKnownSid(sid, WinLocalSystemSid) ||
           IsWellKnownSid(sid, WinBuiltinAdministratorsSid) || IsWellKnownSid(sid, WinCreatorOwnerSid) ||
           IsWellKnownSid(sid, WinCreatorOwnerRightsSid);
}

static bool lets_others_write(ACL *list, PSID user) {
    if (list == NULL) return true; /* no list: everybody may do everything */
    for (DWORD i = 0; i < list->AceCount; i++) {
        ACE_HEADER *entry;
        if (!GetAce(list, i, (void **)&entry)) return true;
        if (entry->AceType != ACCESS_ALLOWED_ACE_TYPE)
            continue; /* others take away, or are of kinds that files have not */
        ACCESS_ALLOWED_ACE *allowed = (ACCESS_ALLOWED_ACE *)(void *)entry;
        if ((allowed->Mask & WRITES) != 0 && !is_trusted(&allowed->SidStart, user)) return true;
    }
    return false;
}

bool onuma__os_is_private(HANDLE file) {
    user_sid user;
    PSID owner = NULL;
    ACL *list = NULL;
    PSECURITY_DESCRIPTOR descriptor = NULL;
    if (!find_user(&user) ||
        GetSecurityInfo(file, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &owner, NULL,
                        &list, NULL, &descriptor) != ERROR_SUCCESS)
        return false;
    const bool is_private =
        owner != NULL && is_trusted(owner, user.token.User.Sid) && !lets_others_write(list, user.token.User.Sid);
    LocalFree(descriptor);
    return is_private;
}

bool onuma__os_private_rights(onuma__os_rights *rights) {
    user_sid user;
    if (!find_user(&user)) return false;
    ACL *list = (ACL *)(void *)rights->list;
    const DWORD inherited = CONTAINER_INHERIT_ACE | OBJECT_INHERIT_ACE;
    if (!InitializeAcl(list, sizeof rights->list, ACL_REVISION) ||
        !AddAccessAllowedAceEx(list, ACL_REVISION, inherited, FILE_ALL_ACCESS, user.token.User.Sid) ||
        !InitializeSecurityDescriptor(&rights->descriptor, SECURITY_DESCRIPTOR_REVISION) ||
        !SetSecurityDescriptorDacl(&rights->descriptor, TRUE, list, FALSE) ||
        !SetSecurityDescriptorControl(&rights->descriptor, SE_DACL_PROTECTED, SE_DACL_PROTECTED))
        return false;
    rights->attributes = (SECURITY_ATTRIBUTES){sizeof rights->attributes, &rights->descriptor, FALSE};
    return true;
}
